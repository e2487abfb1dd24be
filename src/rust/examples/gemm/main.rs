//! D = relu(A·B + bias) without a window, then D = relu(A·B + bias) · T0 with a step of the epilogue:
//! A and B are f16, D and T0 are f32. B is packed if the device gains by it. The results are exact,
//! and are compared with the host's.
//!
//! ```sh
//! VKGEMM_DIR=$HOME/vkgemm cargo run --example gemm
//! ```
mod vulkan;

use vkgemm::{sys, Activation, Bias, Context, DataType, DeviceSpan, Epilogue, EpilogueStep, Matrix};
use vkgemm::{Operands, PackedOperand, Packing, Problem, Requirements, StepOp, StepOperand};
use vkgemm::{TensorShape, TuneInfo};
use vulkan::{App, Buffer};

const M: usize = 40;
const N: usize = 56;
const K: usize = 72;

/// An integer from -2 to 2, by its number.
fn value(i: usize) -> f32 {
    (i * 7919 % 5) as f32 - 2.0
}

/// The same as f16: the exponent's bias differs, and these have few digits.
fn to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value == 0.0 {
        0
    } else {
        (bits >> 16 & 0x8000 | (bits >> 13 & 0x3FFFF) - (112 << 10)) as u16
    }
}

fn span(buffer: &Buffer) -> DeviceSpan {
    DeviceSpan { address: buffer.address, bytes: buffer.bytes }
}

/// A buffer with an element for each number.
unsafe fn filled<T>(app: &App, count: usize, element: impl Fn(usize) -> T) -> Buffer {
    let buffer = app.create_buffer((count * std::mem::size_of::<T>()) as u64);
    for i in 0..count {
        buffer.data.cast::<T>().add(i).write(element(i));
    }
    buffer
}

/// Compares D with relu(A·B + bias), element i of which is multiplied by `factor(i)`.
unsafe fn check(d: &Buffer, factor: impl Fn(usize) -> f32) {
    for (i, j) in (0..M).flat_map(|i| (0..N).map(move |j| (i, j))) {
        let sum: f32 = (0..K).map(|l| value(i * K + l) * value(l * N + j + 3)).sum();
        let expected = (sum + value(j)).max(0.0) * factor(i * N + j);
        let got = d.data.cast::<f32>().add(i * N + j).read();
        assert_eq!(got, expected, "D[{i}, {j}]");
    }
}

fn main() -> vkgemm::Result<()> {
    // SAFETY: the handles belong together, and the device is destroyed last.
    unsafe {
        let mut app = App::new();
        let (instance, gpu) = (app.instance, app.physical_device);
        let needs = Requirements::query(instance, gpu, app.get_instance_proc_addr)?;
        app.create_device(needs.extensions(), needs.features());
        let info = sys::VkgemmContextCreateInfo {
            instance,
            physical_device: gpu,
            device: app.device,
            get_instance_proc_addr: app.get_instance_proc_addr,
            ..needs.create_info()
        };
        let log = Box::new(|level, message: &str| eprintln!("{level}: {message}"));
        let context = Context::with_log(&info, log)?;
        drop(needs);
        multiply(&app, &context)?;
        drop(context);
        app.close();
    }
    Ok(())
}

/// # Safety
/// The context is one of the application's device.
unsafe fn multiply(app: &App, context: &Context) -> vkgemm::Result<()> {
    let a = filled(app, M * K, |i| to_f16(value(i)));
    let b = filled(app, K * N, |i| to_f16(value(i + 3)));
    let bias = filled(app, N, value);
    let d = filled(app, M * N, |_| f32::NAN);

    let epilogue = Epilogue { bias: Bias::ALONG_N, activation: Activation::RELU, ..Epilogue::default() };
    let f32_matrix = Matrix { type_: DataType::F32, ..Matrix::default() };
    let problem = Problem {
        m: M as u64,
        n: N as u64,
        k: K as u64,
        d: Some(&f32_matrix),
        epilogue: Some(&epilogue),
        ..Problem::default()
    };
    let layout = context.packed_layout(&problem, PackedOperand::B)?;
    let is_packed = layout.bytes != 0;
    let packing = if is_packed { Packing::PACKED } else { Packing::PLAIN };
    let packed_matrix = Matrix { packing, ..Matrix::default() };
    let pack = context.plan_pack(&problem, PackedOperand::B)?; // of a plain B
    let problem = Problem { b: Some(&packed_matrix), ..problem };
    // The fastest configuration on this device, of those that can be timed within 200 ms.
    let (queue, queue_family) = (app.queue, app.queue_family);
    let info = TuneInfo { queue, queue_family, budget_ms: 200.0, ..TuneInfo::default() };
    let tuned = context.tune_with(&problem, &info, &mut |state| {
        println!("{} of {} timed, best {} us", state.timed, state.candidates, state.best_us);
        true
    })?;
    let plan = context.plan(&problem)?;
    assert_eq!(plan.config(), tuned.config.as_str());
    println!("{}", plan.explain());

    let packed = app.create_buffer(layout.bytes);
    let workspace = app.create_buffer(plan.workspace_bytes());
    let commands = app.begin();
    if is_packed {
        let operands = Operands { source: span(&b), packed: span(&packed), ..Operands::default() };
        pack.record(commands, &operands)?;
        app.barrier(commands);
    }
    let mut operands = Operands {
        a: span(&a),
        b: span(if is_packed { &packed } else { &b }),
        b_fingerprint: layout.fingerprint,
        d: span(&d),
        bias: span(&bias),
        workspace: span(&workspace),
        ..Operands::default()
    };
    plan.record(commands, &operands)?;
    app.run(commands);

    check(&d, |_| 1.0);
    println!("{M} x {N} x {K}, B {packing}: every element is right");

    // The same times T0, with the same A and B.
    let t0 = filled(app, M * N, value);
    let mut steps_epilogue = epilogue;
    steps_epilogue.tensors[0] = TensorShape::MATRIX;
    steps_epilogue.steps[0] =
        EpilogueStep { op: StepOp::MULTIPLY, operand: StepOperand::T0, ..EpilogueStep::default() };
    let problem = Problem { epilogue: Some(&steps_epilogue), t0: Some(&f32_matrix), ..problem };
    let steps_plan = context.plan(&problem)?;
    let planned = steps_plan.problem().epilogue.map(|planned| planned.steps);
    assert_eq!(planned, Some(steps_epilogue.steps));
    let steps_workspace = app.create_buffer(steps_plan.workspace_bytes());
    let commands = app.begin();
    let steps_operands = Operands { t0: span(&t0), workspace: span(&steps_workspace), ..operands };
    steps_plan.record(commands, &steps_operands)?;
    app.run(commands);
    check(&d, value);
    println!("times T0 in a step: every element is right");

    // A span that is too small is refused before anything is recorded.
    operands.a.bytes -= 1;
    let error = plan.record(app.begin(), &operands).unwrap_err();
    println!("refused: {error}");
    assert_eq!(error.status, vkgemm::Status::ERROR_SPAN_TOO_SMALL);
    for buffer in [a, b, bias, d, packed, workspace, t0, steps_workspace] {
        app.destroy_buffer(buffer);
    }
    Ok(())
}
