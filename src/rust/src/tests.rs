//! What needs no device: layouts, names, configurations, errors.
use super::*;

macro_rules! structure {
    ($out:ident, $name:ident) => {
        let (size, align) = (std::mem::size_of::<$name>(), std::mem::align_of::<$name>());
        $out += &format!("struct {}, {size} bytes, aligned to {align}\n", stringify!($name));
    };
}
macro_rules! field {
    ($out:ident, $name:ident, $field:ident, $c:expr) => {
        let whole = <$name>::default();
        let offset = ptr::addr_of!(whole.$field) as usize - ptr::addr_of!(whole) as usize;
        $out += &format!("  {offset:3} + {:2}  {}\n", std::mem::size_of_val(&whole.$field), $c);
    };
}
macro_rules! enumeration {
    ($out:ident, $name:ident) => {
        $out += &format!("enum {}, {} bytes\n", stringify!($name), std::mem::size_of::<$name>());
    };
}
macro_rules! enumerator {
    ($out:ident, $value:expr, $c:expr) => {
        $out += &format!("  {:3}  {}\n", $value.0, $c);
    };
}
include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// VKGEMM_ABI is tests/c/abi.txt, which a C program writes.
#[test]
fn layouts_are_those_of_c() {
    let file = match std::env::var("VKGEMM_ABI") {
        Ok(file) => file,
        Err(_) => return eprintln!("skipped: VKGEMM_ABI is not set"),
    };
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let is_layout = |line: &&str| ["struct ", "enum ", "  "].iter().any(|p| line.starts_with(p));
    let c: Vec<&str> = text.lines().filter(is_layout).filter(|l| !l.ends_with("_MAX_ENUM")).collect();
    let rust = abi();
    assert!(c.len() > 400, "{file} has only {} layouts", c.len());
    for (c, rust) in c.iter().zip(rust.lines()) {
        assert_eq!(*c, rust);
    }
    assert_eq!(c.len(), rust.lines().count());
}

#[test]
fn every_function_is_linked() {
    assert!(functions().len() > 70 && functions().iter().all(|f| !f.is_null()));
}

#[test]
fn defaults_are_those_of_c() {
    let problem = Problem::default();
    assert_eq!((problem.batch, problem.max_workspace_bytes), (1, 256 << 20));
    assert!(problem.a.is_none() && Epilogue::default().clamp_min.is_nan());
    assert_eq!(Matrix::default(), Matrix { type_: DataType::F16, ..Matrix::default() });
    assert_eq!(Matrix::default().ld, VKGEMM_NOT_SET);
    let none = EpilogueStep { op: StepOp::NONE, activation: Activation::NONE, ..EpilogueStep::default() };
    assert_eq!(Epilogue::default().steps, [none; 8]);
    assert_eq!(Epilogue::default().tensors, [TensorShape::NONE; 4]);
}

#[test]
fn enumerators_have_names() {
    assert_eq!("gelu_erf".parse(), Ok(Activation::GELU_ERF));
    assert_eq!(DataType::BF16.to_string(), "bf16");
    assert_eq!(DataType(77).to_string(), "77");
    assert_eq!(DataType::E4M3.to_string(), "e4m3");
    assert_eq!("quantise".parse(), Ok(RowOp::QUANTISE));
    assert_eq!("leaky_relu".parse(), Ok(Activation::LEAKY_RELU));
    assert_eq!("derivative".parse(), Ok(StepOp::DERIVATIVE));
    assert_eq!("sum_columns".parse(), Ok(StepOp::SUM_COLUMNS));
    assert_eq!("amax".parse(), Ok(StepOp::AMAX));
    assert_eq!("mask".parse(), Ok(TensorShape::MASK));
    assert_eq!((StepOperand::T3.to_string(), TensorShape(9).to_string()), ("t3".into(), "9".into()));
    let error = "f17".parse::<DataType>().unwrap_err();
    assert_eq!(error.status, Status::ERROR_INVALID_ARGUMENT);
    assert!(error.message.contains("f17"), "{error}");
    assert!("a\0b".parse::<DataType>().unwrap_err().message.contains("zero byte at 1"));
}

#[test]
fn configurations_are_read_and_written() {
    let text = normalize_config("fma:tile=32x64x16").unwrap();
    let config: Config = text.parse().unwrap();
    assert_eq!((config.path, config.tile_m, config.tile_n), (Path::FMA, 32, 64));
    assert!("fma:tiles=1".parse::<Config>().unwrap_err().message.contains("tiles"));
}

#[test]
fn problems_are_written_and_checked() {
    let a = Matrix { type_: DataType::BF16, ..Matrix::default() };
    let problem = Problem { m: 3, n: 5, k: 7, a: Some(&a), b: Some(&a), ..Problem::default() };
    let text = problem.command_line().unwrap();
    assert!(text.contains("--m 3") && text.contains("bf16"), "{text}");
    let wrong = Matrix { layout: Layout(9), ..a };
    let error = Problem { a: Some(&wrong), ..problem }.command_line().unwrap_err();
    assert!(error.message.contains("layout") && error.message.contains('9'), "{error}");
}

#[test]
fn steps_are_written_and_checked() {
    let mut epilogue = Epilogue { activation: Activation::SILU, ..Epilogue::default() };
    epilogue.tensors[3] = TensorShape::ALONG_M;
    epilogue.steps[0] =
        EpilogueStep { op: StepOp::MULTIPLY, operand: StepOperand::T3, ..EpilogueStep::default() };
    epilogue.steps[1] = EpilogueStep { op: StepOp::MAXIMUM, number: -1.5, ..EpilogueStep::default() };
    let t3 = Matrix { type_: DataType::F32, ..Matrix::default() };
    let problem = Problem { m: 3, epilogue: Some(&epilogue), t3: Some(&t3), ..Problem::default() };
    let text = problem.command_line().unwrap();
    let tensors = "--tensors none,none,none,along_m --dtype-t3 f32";
    assert!(text.contains(tensors) && text.contains("--steps multiply:t3,maximum:-1.5"), "{text}");
    let d = Matrix { type_: DataType::U8, ..Matrix::default() };
    let bytes = Epilogue { zero_point: 7, ..Epilogue::default() };
    let text = Problem { d: Some(&d), epilogue: Some(&bytes), t3: None, ..problem }.command_line();
    assert!(text.unwrap().contains("--zero-point 7"));
    let mut wrong = epilogue;
    wrong.steps[1].op = StepOp(77);
    let error = Problem { epilogue: Some(&wrong), ..problem }.command_line().unwrap_err();
    assert!(error.message.contains("epilogue.steps[1].op is 77"), "{error}");
}

#[test]
fn the_rest_needs_no_device_either() {
    let (major, minor, patch) = version();
    assert_eq!(format!("{major}.{minor}.{patch}"), env!("CARGO_PKG_VERSION"));
    assert_eq!(Fingerprint::default().difference(&Fingerprint::default()), "");
    // As `ash` has them: handles by as_raw(), and vkGetInstanceProcAddr.
    type Function = unsafe extern "system" fn();
    unsafe extern "system" fn get(_: u64, _: *const c_char) -> Option<Function> {
        None
    }
    let (instance, gpu) = (0u64, 0u64);
    // SAFETY: null handles are refused.
    let error = unsafe { Requirements::query(instance as _, gpu as _, get as _) }.err().unwrap();
    assert_eq!(error.status, Status::ERROR_INVALID_ARGUMENT);
    let empty = ContextCreateInfo::default();
    let error = unsafe { Context::with_log(&empty, Box::new(|_, _| {})) }.err().unwrap();
    assert!(!error.message.is_empty());
    assert_eq!((empty.read_default_tuning_file, TuneInfo::default().budget_ms), (1, 1000.0));
}
