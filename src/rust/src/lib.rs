//! Matrix products for Vulkan applications: D = epilogue(alpha · A·B) on cooperative matrices,
//! recorded into the application's own command buffer. A is M×K, B is K×N, C and D are M×N,
//! `batch` times.
//!
//! Every program makes four calls: [`Requirements::query`] before `vkCreateDevice`,
//! [`Context::new`] once for each device, [`Context::plan`] once for each shape, and
//! [`Plan::record`] any number of times. Structures and enumerators are the C API's, with their C
//! defaults:
//!
//! ```no_run
//! # fn f(context: &vkgemm::Context, commands: vkgemm::sys::VkCommandBuffer) -> vkgemm::Result<()> {
//! use vkgemm::{Activation, Bias, DeviceSpan, Epilogue, Operands, Problem};
//! let epilogue = Epilogue {
//!     bias: Bias::ALONG_N, // of N values, f32
//!     activation: Activation::GELU_ERF,
//!     ..Epilogue::default()
//! };
//! let problem = Problem { m: 512, n: 4096, k: 1024, epilogue: Some(&epilogue), ..Problem::default() };
//! let plan = context.plan(&problem)?; // f16, row-major
//! # let (a, b, d, bias, workspace) = Default::default();
//! let operands = Operands {
//!     a: DeviceSpan { address: a, bytes: 512 * 1024 * 2 },
//!     b: DeviceSpan { address: b, bytes: 1024 * 4096 * 2 },
//!     d: DeviceSpan { address: d, bytes: 512 * 4096 * 2 },
//!     bias: DeviceSpan { address: bias, bytes: 4096 * 4 },
//!     workspace: DeviceSpan { address: workspace, bytes: plan.workspace_bytes() },
//!     ..Operands::default()
//! };
//! // SAFETY: the buffers live until the commands have run, and barriers surround them.
//! unsafe { plan.record(commands, &operands) }
//! # }
//! ```
//!
//! Handles of Vulkan are numbers or pointers. Of `ash` they are `device.handle().as_raw() as _`
//! with the trait `ash::vk::Handle`, and `entry.static_fn().get_instance_proc_addr as _`.
//!
//! A call fails with an [`Error`], and then it has recorded nothing. Contexts and plans may be
//! shared by threads. Lists, of shapes, kernels and verdicts, are functions of [`sys`], which
//! `as_raw()` leads to.
#![warn(missing_docs)]

use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_void};
use std::{fmt, panic, process, ptr, slice, str::FromStr};

/// Gives an enumeration the names that configurations and the command line have.
macro_rules! named {
    ($kind:ident, $enumeration:ident) => {
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match crate::enumerator_name(VkgemmEnumeration::$enumeration, self.0) {
                    Ok(name) => f.pad(name),
                    Err(_) => self.0.fmt(f),
                }
            }
        }
        /// Reads a name: "f16", "gelu_erf".
        impl std::str::FromStr for $kind {
            type Err = crate::Error;
            fn from_str(name: &str) -> crate::Result<Self> {
                crate::enumerator_parse(VkgemmEnumeration::$enumeration, name).map(Self)
            }
        }
    };
}
pub mod sys;

use sys::*;
include!(concat!(env!("OUT_DIR"), "/names.rs"));

/// The result of a call that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of failure.
    pub status: Status,
    /// Names the field and its value: "a.ld is 12: a row of K = 16 needs at least 16".
    pub message: String,
    /// The driver's VkResult if a call to it failed, otherwise 0.
    pub vk_result: VkResult,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}
impl std::error::Error for Error {}

/// The error that this thread passes to calls.
struct Slot(*mut VkgemmError);
impl Drop for Slot {
    fn drop(&mut self) {
        unsafe { vkgemm_error_destroy(self.0) };
    }
}
thread_local!(static SLOT: Slot = Slot(made(|error| unsafe { vkgemm_error_create(error) })));

/// Makes a call that can fail.
fn call(f: impl FnOnce(*mut VkgemmError) -> Status) -> Result<()> {
    SLOT.with(|slot| {
        let status = f(slot.0);
        if status == Status::SUCCESS {
            return Ok(());
        }
        let (mut text, mut vk_result) = (ptr::null(), 0);
        // SAFETY: the error is this thread's, and its text is copied before the next call.
        let message = unsafe {
            must(vkgemm_error_message(slot.0, &mut text));
            must(vkgemm_error_vk_result(slot.0, &mut vk_result));
            CStr::from_ptr(text).to_string_lossy().into_owned()
        };
        Err(Error { status, message, vk_result })
    })
}

/// The status of a call that takes an argument, and no error.
fn checked(status: Status, argument: impl fmt::Display) -> Result<()> {
    if status == Status::SUCCESS {
        return Ok(());
    }
    Err(Error { status, message: format!("{argument} is not valid"), vk_result: 0 })
}

/// Makes a call that fails only if an argument is wrong or memory is short.
#[track_caller]
fn must(status: Status) {
    assert_eq!(status, Status::SUCCESS, "vkgemm: a call that cannot fail gave {status}");
}

/// The output of a call that `f` makes.
#[track_caller]
fn got<T: Default>(f: impl FnOnce(&mut T) -> Status) -> T {
    let mut value = T::default();
    must(f(&mut value));
    value
}

/// The handle or pointer that a call hands out.
#[track_caller]
fn made<T>(f: impl FnOnce(&mut *mut T) -> Status) -> *mut T {
    let mut value = ptr::null_mut();
    must(f(&mut value));
    value
}

/// The handle that a call makes, unless it fails.
fn make<T>(f: impl FnOnce(&mut *mut T, *mut VkgemmError) -> Status) -> Result<*mut T> {
    let mut value = ptr::null_mut();
    call(|error| f(&mut value, error))?;
    Ok(value)
}

/// A text that a call writes.
fn text(f: impl Fn(*mut c_char, &mut usize, *mut VkgemmError) -> Status) -> Result<String> {
    let mut size = 0;
    call(|error| f(ptr::null_mut(), &mut size, error))?;
    let mut bytes = vec![0u8; size];
    call(|error| f(bytes.as_mut_ptr().cast(), &mut size, error))?;
    bytes.truncate(size - 1); // the zero byte
    Ok(String::from_utf8(bytes).expect("vkgemm writes UTF-8"))
}

/// A text that C keeps as long as `'a`.
unsafe fn borrowed<'a>(text: *const c_char) -> &'a str {
    CStr::from_ptr(text).to_str().expect("vkgemm writes UTF-8")
}

fn c_text(name: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|e| Error {
        status: Status::ERROR_INVALID_ARGUMENT,
        message: format!("{name} has a zero byte at {}", e.nul_position()),
        vk_result: 0,
    })
}

fn enumerator_name(of: Enumeration, value: i32) -> Result<&'static str> {
    let mut name = ptr::null();
    let status = unsafe { vkgemm_enumerator_name(of, value, &mut name) };
    checked(status, value)?;
    Ok(unsafe { borrowed(name) })
}

fn enumerator_parse(of: Enumeration, name: &str) -> Result<i32> {
    let mut value = 0;
    let status = unsafe { vkgemm_enumerator_parse(of, c_text("name", name)?.as_ptr(), &mut value) };
    checked(status, name)?;
    Ok(value)
}

/// The version of the library that is linked: major, minor, patch.
pub fn version() -> (u32, u32, u32) {
    let mut v = (0, 0, 0);
    must(unsafe { vkgemm_version(&mut v.0, &mut v.1, &mut v.2) });
    v
}

impl FromStr for Config {
    type Err = Error;
    /// Reads a configuration. The error names the part that is wrong.
    fn from_str(config: &str) -> Result<Self> {
        let (config, mut parsed) = (c_text("config", config)?, Self::default());
        call(|error| unsafe { vkgemm_config_parse(config.as_ptr(), &mut parsed, error) })?;
        Ok(parsed)
    }
}

/// The configuration as vkgemm prints it: two of the same meaning give the same text.
pub fn normalize_config(config: &str) -> Result<String> {
    let config = c_text("config", config)?;
    text(|to, size, error| unsafe { vkgemm_config_normalize(config.as_ptr(), to, size, error) })
}

impl Problem<'_> {
    /// The arguments of a `vkgemm run` that computes the problem again.
    pub fn command_line(&self) -> Result<String> {
        text(|to, size, error| unsafe { vkgemm_problem_command_line(self, to, size, error) })
    }
}

impl Fingerprint {
    /// The first field in which two fingerprints differ, with both values; empty if they are alike.
    pub fn difference(&self, wanted: &Self) -> String {
        let f = |to, size: &mut _, _| unsafe { vkgemm_fingerprint_difference(self, wanted, to, size) };
        text(f).expect("a text")
    }
}

/// The extensions and features to enable on a physical device.
pub struct Requirements(*mut VkgemmRequirements);

impl Requirements {
    /// Asks a physical device what to enable on it: everything that it supports and vkgemm uses.
    /// Fails with [`Status::ERROR_MISSING_FEATURE`] if not even path fma can run.
    ///
    /// # Safety
    /// The handles are valid during the call. The instance is one of Vulkan 1.3, and
    /// `get_instance_proc_addr` is its `vkGetInstanceProcAddr`.
    pub unsafe fn query(
        instance: VkInstance,
        physical_device: VkPhysicalDevice,
        get_instance_proc_addr: PFN_vkGetInstanceProcAddr,
    ) -> Result<Self> {
        let (gpu, get) = (physical_device, get_instance_proc_addr);
        make(|to, error| vkgemm_requirements_query(instance, gpu, get, to, error)).map(Self)
    }

    /// `VkDeviceCreateInfo::ppEnabledExtensionNames`. The texts live as long as the requirements.
    pub fn extensions(&self) -> &[*const c_char] {
        let (mut count, mut names) = (0, ptr::null());
        must(unsafe { vkgemm_requirements_extensions(self.0, &mut count, &mut names) });
        if count == 0 {
            return &[];
        }
        // SAFETY: the array lives as long as the requirements.
        unsafe { slice::from_raw_parts(names, count as usize) }
    }

    /// `VkDeviceCreateInfo::pNext`, with `pEnabledFeatures` null: a `VkPhysicalDeviceFeatures2` that
    /// lives as long as the requirements.
    pub fn features(&self) -> *const VkPhysicalDeviceFeatures2 {
        let mut features = ptr::null();
        must(unsafe { vkgemm_requirements_features(self.0, &mut features) });
        features
    }

    /// Adds the features to a chain of the application, whose other bits stay.
    ///
    /// # Safety
    /// `chain` points to a valid `VkPhysicalDeviceFeatures2`. The chain is used no longer than the
    /// requirements live, or until they merge into another one.
    pub unsafe fn merge_into(&mut self, chain: *mut VkPhysicalDeviceFeatures2) -> Result<()> {
        checked(vkgemm_requirements_merge_into(self.0, chain), "chain")
    }

    /// The capabilities of a device that is created with exactly these.
    pub fn caps(&self) -> Caps<'_> {
        let mut caps = ptr::null();
        must(unsafe { vkgemm_requirements_caps(self.0, &mut caps) });
        Caps(caps, PhantomData)
    }

    /// For a device that was created with exactly these: set the four handles, then
    /// [`Context::new`].
    pub fn create_info(&self) -> ContextCreateInfo<'_> {
        let extensions = self.extensions();
        ContextCreateInfo {
            enabled_extension_count: extensions.len() as u32,
            enabled_extensions: extensions.as_ptr(),
            enabled_features: self.features(),
            ..ContextCreateInfo::default()
        }
    }
}

impl Drop for Requirements {
    fn drop(&mut self) {
        must(unsafe { vkgemm_requirements_destroy(self.0) });
    }
}

/// The capabilities of a device. They belong to their requirements or context.
#[derive(Clone, Copy)]
pub struct Caps<'a>(*const VkgemmCaps, PhantomData<&'a ()>);

impl<'a> Caps<'a> {
    /// The properties that the choice of a kernel depends on.
    pub fn device(self) -> DeviceCaps<'a> {
        got(|to| unsafe { vkgemm_caps_device(self.0, to) })
    }

    /// The limits that decide which configurations are legal.
    pub fn limits(self) -> Limits {
        got(|to| unsafe { vkgemm_caps_limits(self.0, to) })
    }

    /// The reason why a path may not be used: it names the missing extension, feature or shape.
    /// `None` if it may.
    pub fn unavailable(self, path: Path) -> Result<Option<&'a str>> {
        let (mut available, mut reason) = (0, ptr::null());
        let status = unsafe { vkgemm_caps_path(self.0, path, &mut available, &mut reason) };
        checked(status, "path")?;
        Ok(if available == 0 { Some(unsafe { borrowed(reason) }) } else { None })
    }

    /// The file in which `vkgemm info --self-test` keeps this device's verdicts; empty if the
    /// environment names no folder for it.
    pub fn default_verdict_file(self) -> String {
        text(|to, size, _| unsafe { vkgemm_default_verdict_file(self.0, to, size) }).expect("a text")
    }

    /// The tuning table that every context reads by default; empty if the environment names no
    /// folder for it.
    pub fn default_tuning_file(self) -> String {
        text(|to, size, _| unsafe { vkgemm_default_tuning_file(self.0, to, size) }).expect("a text")
    }

    /// For functions of [`sys`].
    pub fn as_raw(self) -> *const VkgemmCaps {
        self.0
    }
}

/// Is called with a level and a message, by any thread that calls vkgemm. A panic ends the process.
pub type Log = dyn Fn(LogLevel, &str) + Send + Sync;

unsafe extern "system" fn forward(level: LogLevel, message: *const c_char, log: *mut c_void) {
    let log = &*(log as *const Box<Log>);
    let call = panic::AssertUnwindSafe(|| log(level, &CStr::from_ptr(message).to_string_lossy()));
    if panic::catch_unwind(call).is_err() {
        process::abort();
    }
}

/// Is called with the state of a tuning run after each timing, and returns false to end the run. A
/// panic ends the process.
pub type Progress<'f> = dyn FnMut(&TuneProgress) -> bool + 'f;

unsafe extern "system" fn report(state: *const TuneProgress, to: *mut c_void) -> VkBool32 {
    let to = &mut *(to as *mut &mut Progress<'_>);
    match panic::catch_unwind(panic::AssertUnwindSafe(|| to(&*state))) {
        Ok(goes_on) => goes_on.into(),
        Err(_) => process::abort(),
    }
}

/// vkgemm on one VkDevice.
pub struct Context {
    raw: *mut VkgemmContext,
    log: Option<Box<Box<Log>>>, // dropped after the handle
}

impl Context {
    /// Makes a context. Use [`Requirements::create_info`] if the device was created with these.
    ///
    /// Errors: [`Status::ERROR_INVALID_ARGUMENT`] if a field is missing or contradicts another, or
    /// `tuning_file` is malformed; [`Status::ERROR_IO`] if that file cannot be read;
    /// [`Status::ERROR_MISSING_FEATURE`] if not even path fma can run; the error of a driver's call.
    ///
    /// # Safety
    /// - The four handles are valid and belong together. They outlive the context and its plans.
    /// - The device was created with `enabled_extensions` and `enabled_features`, which point to
    ///   valid memory.
    /// - The pointers of the self-test are valid.
    /// - Nothing outside this context uses the self-test's queue during this call, and later during
    ///   [`Context::plan`], [`Context::plan_with`], [`Context::plan_pack`] and
    ///   [`Context::packed_layout`].
    /// - If `pipeline_cache` is externally synchronised, plans are made by one thread at a time.
    /// - `log` may be called by any thread as long as the context or a plan lives.
    pub unsafe fn new(info: &ContextCreateInfo<'_>) -> Result<Self> {
        let raw = make(|to, error| vkgemm_context_create(info, to, error))?;
        Ok(Self { raw, log: None })
    }

    /// [`Context::new`] with a function that is handed each message of the log.
    ///
    /// # Safety
    /// As [`Context::new`].
    pub unsafe fn with_log(info: &ContextCreateInfo<'_>, log: Box<Log>) -> Result<Self> {
        let log = Box::new(log);
        let log_user_data = &*log as *const Box<Log> as *mut c_void;
        let info = ContextCreateInfo { log: Some(forward), log_user_data, ..*info };
        let mut context = Self::new(&info)?;
        context.log = Some(log);
        Ok(context)
    }

    /// The device's capabilities, with what was enabled on it.
    pub fn caps(&self) -> Caps<'_> {
        let mut caps = ptr::null();
        must(unsafe { vkgemm_context_caps(self.raw, &mut caps) });
        Caps(caps, PhantomData)
    }

    /// Adds a function for steps of epilogues, and returns its number for [`Epilogue::function`].
    /// `vkgemm/epilogue.hpp` has the rules for the SPIR-V. `cost`, for estimates: its time for an
    /// element, divided by that of one more matrix as C; 0 if you don't know it.
    ///
    /// Errors: [`Status::ERROR_INVALID_ARGUMENT`] if it has no function of the right name and type,
    /// [`Status::ERROR_UNSUPPORTED`] if the function needs what kernels do not have.
    pub fn add_function(&self, name: &str, spirv: &[u32], cost: f64) -> Result<u32> {
        let name = c_text("name", name)?;
        let (text, words, mut number) = (name.as_ptr(), spirv.as_ptr(), 0);
        call(|error| unsafe {
            let size = spirv.len();
            vkgemm_context_add_function(self.raw, text, words, size, cost, &mut number, error)
        })?;
        Ok(number)
    }

    /// For functions of [`sys`].
    pub fn as_raw(&self) -> *const VkgemmContext {
        self.raw
    }

    /// Plans a product: chooses a configuration and builds its pipelines. This is the only slow
    /// step, and only the first time that a pipeline is needed. It may test kernels on the
    /// self-test's queue, which must have no other use meanwhile ([`Context::new`]).
    ///
    /// Errors: [`Status::ERROR_INVALID_ARGUMENT`] for a problem that contradicts itself,
    /// [`Status::ERROR_UNSUPPORTED`] if nothing computes it here.
    pub fn plan(&self, problem: &Problem<'_>) -> Result<Plan<'_>> {
        let none = ptr::null();
        Plan::make(|to, error| unsafe { vkgemm_plan_create(self.raw, problem, none, to, error) })
    }

    /// [`Context::plan`] with a configuration, such as one of [`Context::candidates`].
    /// [`Status::ERROR_UNSUPPORTED`] if it doesn't compute the problem. The self-test's queue must have
    /// no other use meanwhile.
    pub fn plan_with(&self, problem: &Problem<'_>, config: &str) -> Result<Plan<'_>> {
        let config = c_text("config", config)?;
        let text = config.as_ptr();
        Plan::make(|to, error| unsafe { vkgemm_plan_create(self.raw, problem, text, to, error) })
    }

    /// Every legal configuration of the tuning tables' rows, preferred ones first, each with where
    /// its row comes from. None for an empty problem.
    pub fn candidates(&self, problem: &Problem<'_>) -> Result<Vec<(String, String)>> {
        unsafe {
            let list = make(|to, error| vkgemm_candidates_create(self.raw, problem, to, error))?;
            let one = |i| {
                let (mut config, mut provenance) = (ptr::null(), ptr::null());
                must(vkgemm_candidates_get(list, i, &mut config, &mut provenance));
                (borrowed(config).into(), borrowed(provenance).into())
            };
            let all = (0..got(|to| vkgemm_candidates_count(list, to))).map(one).collect();
            must(vkgemm_candidates_destroy(list));
            Ok(all)
        }
    }

    /// Times configurations of the problem on a queue, and keeps the fastest: [`Context::plan`] takes
    /// it from now on. Plans that exist keep their configuration. `vkgemm/tune.hpp` says more.
    ///
    /// Errors: [`Status::ERROR_INVALID_ARGUMENT`] if there is no queue, or an option is out of its
    /// range; [`Status::ERROR_OUT_OF_DEVICE_MEMORY`]; [`Status::ERROR_IO`] if `file` cannot be read
    /// or written: then the context keeps the configuration; those of [`Context::plan`].
    ///
    /// # Safety
    /// - The queue is one of the context's device, and nothing outside this context uses it during the
    ///   call.
    /// - `progress` may be called with `progress_user_data`.
    pub unsafe fn tune(&self, problem: &Problem<'_>, info: &TuneInfo<'_>) -> Result<TuneResult<'_>> {
        let mut result = TuneResult::default();
        call(|error| vkgemm_tune(self.raw, problem, info, &mut result, error))?;
        Ok(result)
    }

    /// [`Context::tune`] with a function that is handed the state of the run. It must not use the
    /// context.
    ///
    /// # Safety
    /// As [`Context::tune`].
    pub unsafe fn tune_with(
        &self,
        problem: &Problem<'_>,
        info: &TuneInfo<'_>,
        mut progress: &mut Progress<'_>,
    ) -> Result<TuneResult<'_>> {
        let progress_user_data = &mut progress as *mut &mut Progress<'_> as *mut c_void;
        self.tune(problem, &TuneInfo { progress: Some(report), progress_user_data, ..*info })
    }

    /// The layout of an operand of the problem when it is packed. 0 bytes: this device gains nothing.
    /// The self-test's queue must have no other use meanwhile.
    pub fn packed_layout(&self, problem: &Problem<'_>, of: PackedOperand) -> Result<PackedLayout> {
        let mut layout = PackedLayout::default();
        call(|error| unsafe { vkgemm_packed_layout(self.raw, problem, of, &mut layout, error) })?;
        Ok(layout)
    }

    /// Plans the packing of an operand: reads [`Operands::source`], or codes, scales and zeros of a
    /// quantised B. Writes [`Operands::packed`], [`PackedLayout::bytes`] long. The self-test's queue
    /// must have no other use meanwhile.
    pub fn plan_pack(&self, problem: &Problem<'_>, of: PackedOperand) -> Result<Plan<'_>> {
        Plan::make(|to, error| unsafe { vkgemm_plan_pack(self.raw, problem, of, to, error) })
    }

    /// Plans the quantisation of rows to s8: reads [`Operands::source`], writes
    /// [`Operands::codes`] and [`Operands::scales`].
    pub fn plan_quantise_rows(&self, rows: &RowQuantisation<'_>) -> Result<Plan<'_>> {
        Plan::make(|to, error| unsafe { vkgemm_plan_quantise_rows(self.raw, rows, to, error) })
    }

    /// How often workgroups gave up waiting for one another. The results were right, but late.
    pub fn barrier_aborts(&self) -> u32 {
        got(|to| unsafe { vkgemm_context_barrier_aborts(self.raw, to) })
    }

    /// Tells the context that the application saw VK_ERROR_DEVICE_LOST. From then on calls fail
    /// with [`Status::ERROR_DEVICE_LOST`].
    pub fn notify_device_lost(&self) {
        must(unsafe { vkgemm_context_notify_device_lost(self.raw) });
    }

    /// Whether the application said so, or the driver.
    pub fn device_lost(&self) -> bool {
        got(|to| unsafe { vkgemm_context_device_lost(self.raw, to) }) != 0
    }

    /// Writes the pipelines built so far to `pipeline_cache_file`, if there is one.
    pub fn save_pipeline_cache(&self) -> Result<()> {
        call(|error| unsafe { vkgemm_context_save_pipeline_cache(self.raw, error) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        must(unsafe { vkgemm_context_destroy(self.raw) });
    }
}

/// A product, the packing of an operand, or the quantisation of rows, bound to pipelines.
///
/// A plan cannot outlive its context:
///
/// ```compile_fail,E0505
/// fn f(context: vkgemm::Context) {
///     let plan = context.plan(&vkgemm::Problem::default()).unwrap();
///     drop(context);
///     plan.workspace_bytes();
/// }
/// ```
pub struct Plan<'c>(*mut VkgemmPlan, PhantomData<&'c Context>);

impl Plan<'_> {
    fn make(f: impl FnOnce(&mut *mut VkgemmPlan, *mut VkgemmError) -> Status) -> Result<Self> {
        Ok(Self(make(f)?, PhantomData))
    }

    /// For functions of [`sys`].
    pub fn as_raw(&self) -> *const VkgemmPlan {
        self.0
    }

    /// The problem that was planned; the defaults if the plan is no product.
    pub fn problem(&self) -> Problem<'_> {
        got(|to| unsafe { vkgemm_plan_problem(self.0, to) })
    }

    /// The configuration. Without meaning if the plan is no product.
    pub fn config(&self) -> &str {
        let mut config = ptr::null();
        must(unsafe { vkgemm_plan_config(self.0, &mut config) });
        unsafe { borrowed(config) }
    }

    /// Bytes of [`Operands::workspace`], aligned to 256 bytes; 0: none. Set the first word of a
    /// grouped plan's workspace to `u32::MAX` before the plan runs. Afterwards it holds the index of
    /// the first group with bad offsets, or still `u32::MAX`.
    pub fn workspace_bytes(&self) -> u64 {
        got(|to| unsafe { vkgemm_plan_workspace_bytes(self.0, to) })
    }

    /// How many dispatches [`Plan::record`] records.
    pub fn dispatch_count(&self) -> u32 {
        got(|to| unsafe { vkgemm_plan_dispatch_count(self.0, to) })
    }

    /// The milliseconds that all dispatches are estimated to take; NaN if there is no estimate.
    pub fn estimated_ms(&self) -> f64 {
        got(|to| unsafe { vkgemm_plan_estimated_ms(self.0, to) })
    }

    /// Why this kernel: for people; several lines.
    pub fn explain(&self) -> String {
        text(|to, size, _| unsafe { vkgemm_plan_explain(self.0, to, size) }).expect("a text")
    }

    /// The `vkgemm run` that computes the product again; empty if the plan is no product.
    pub fn command_line(&self) -> String {
        text(|to, size, _| unsafe { vkgemm_plan_command_line(self.0, to, size) }).expect("a text")
    }

    /// The bytes that a recording touches of each operand. Addresses are 0.
    pub fn operands(&self) -> Operands {
        got(|to| unsafe { vkgemm_plan_operands(self.0, to) })
    }

    /// How the operand lies that this plan packs. 0 bytes if it packs nothing.
    pub fn layout(&self) -> PackedLayout {
        got(|to| unsafe { vkgemm_plan_layout(self.0, to) })
    }

    /// Records all dispatches into a command buffer. Checks every span first: on an error nothing is
    /// recorded. Never compiles and never submits.
    ///
    /// # Safety
    /// - The command buffer is one of the context's device, in the recording state, outside a render
    ///   pass. No other thread uses it or its pool during the call.
    /// - Each span that the plan uses is memory of the device, from its recording to its execution's
    ///   end. Unused operands may be at their defaults.
    /// - The context lives until the execution has ended or the command buffer was reset.
    /// - A barrier before makes operands visible to compute shaders (storage reads and writes). A
    ///   barrier after waits for these before anything uses the written operands.
    /// - No other recording in flight uses the workspace.
    pub unsafe fn record(&self, commands: VkCommandBuffer, operands: &Operands) -> Result<()> {
        call(|error| vkgemm_plan_record(self.0, commands, operands, ptr::null(), error))
    }

    /// Records some of the dispatches.
    ///
    /// # Safety
    /// As [`Plan::record`]. Ranges are recorded in their order, with barriers as `Plan::record()` in
    /// `vkgemm/context.hpp` describes.
    pub unsafe fn record_range(
        &self,
        commands: VkCommandBuffer,
        operands: &Operands,
        range: &DispatchRange,
    ) -> Result<()> {
        call(|error| vkgemm_plan_record(self.0, commands, operands, range, error))
    }
}

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        must(unsafe { vkgemm_plan_destroy(self.0) });
    }
}

// SAFETY: vkgemm.h lets any thread make each call of these, but for `&mut self` and drop.
unsafe impl Send for Requirements {}
unsafe impl Sync for Requirements {}
unsafe impl Send for Caps<'_> {}
unsafe impl Sync for Caps<'_> {}
unsafe impl Send for Context {}
unsafe impl Sync for Context {}
unsafe impl Send for Plan<'_> {}
unsafe impl Sync for Plan<'_> {}

#[cfg(test)]
mod tests;
