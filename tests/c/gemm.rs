// vkgemm.h from Rust, with no more of it declared than is used: D = A·B in f16, where A is the unit matrix.
// Structures end where this program knows no more: struct_size says so, and the rest has its defaults.
#![allow(dead_code)] // fields that only C reads
use std::{ffi::c_void, ffi::CStr, mem::size_of, os::raw::c_char, ptr::null, ptr::null_mut, slice};
type Handle = *mut c_void; // also of Vulkan, and functions

// App, of app.h, begins with the handles of VkgemmContextCreateInfo, in their order.
#[repr(C)] #[derive(Clone, Copy)] struct App { instance: Handle, physical_device: Handle, device: Handle, get: Handle }
#[repr(C)] struct Buffer { handle: u64, memory: Handle, data: *mut u16, address: u64, bytes: u64 }
#[repr(C)] struct ContextInfo { struct_size: u32, extension_count: u32, extensions: Handle, features: Handle, app: App }
#[repr(C)] struct Problem { struct_size: u32, f32_arithmetic: u32, m: u64, n: u64, k: u64 }
#[repr(C)] struct Operands { struct_size: u32, reserved: u32, spans: [[u64; 2]; 12] }

extern "C" {
    fn app_open() -> *mut App; fn app_close(app: *mut App);
    fn app_create_device(app: *mut App, extension_count: u32, extensions: Handle, features: Handle);
    fn app_create_buffer(app: *mut App, bytes: u64) -> Buffer; fn app_destroy_buffer(app: *mut App, buffer: *mut Buffer);
    fn app_begin(app: *mut App) -> Handle; fn app_run(app: *mut App, commands: Handle);
    fn vkgemm_error_create(error: *mut Handle) -> i32; fn vkgemm_error_destroy(error: Handle) -> i32;
    fn vkgemm_error_message(error: Handle, message: *mut *const c_char) -> i32;
    fn vkgemm_requirements_query(instance: Handle, gpu: Handle, get: Handle, needs: *mut Handle, error: Handle) -> i32;
    fn vkgemm_requirements_extensions(needs: Handle, count: *mut u32, names: *mut Handle) -> i32;
    fn vkgemm_requirements_features(needs: Handle, features: *mut Handle) -> i32;
    fn vkgemm_requirements_destroy(needs: Handle) -> i32;
    fn vkgemm_context_create(info: *const ContextInfo, context: *mut Handle, error: Handle) -> i32;
    fn vkgemm_plan_create(context: Handle, problem: *const Problem, config: Handle, plan: *mut Handle, error: Handle) -> i32;
    fn vkgemm_plan_workspace_bytes(plan: Handle, bytes: *mut u64) -> i32;
    fn vkgemm_plan_record(plan: Handle, cmd: Handle, operands: *const Operands, range: Handle, error: Handle) -> i32;
    fn vkgemm_plan_destroy(plan: Handle) -> i32; fn vkgemm_context_destroy(context: Handle) -> i32;
}

fn main() { unsafe {
    let (app, none) = (app_open(), null_mut());
    let (mut error, mut needs, mut context, mut plan): (Handle, Handle, Handle, Handle) = (none, none, none, none);
    assert_eq!(vkgemm_error_create(&mut error), 0);
    let check = |status: i32| if status != 0 {
        let mut message: *const c_char = null();
        vkgemm_error_message(error, &mut message);
        panic!("status {}: {}", status, CStr::from_ptr(message).to_string_lossy());
    };
    let App { instance, physical_device, get, .. } = *app;
    check(vkgemm_requirements_query(instance, physical_device, get, &mut needs, error));
    let (mut extension_count, mut extensions, mut features) = (0, none, none);
    check(vkgemm_requirements_extensions(needs, &mut extension_count, &mut extensions));
    check(vkgemm_requirements_features(needs, &mut features));
    app_create_device(app, extension_count, extensions, features);
    let info = ContextInfo { struct_size: size_of::<ContextInfo>() as u32, extension_count, extensions, features, app: *app };
    check(vkgemm_context_create(&info, &mut context, error));

    let (m, n) = (40, 56);
    let problem = Problem { struct_size: size_of::<Problem>() as u32, f32_arithmetic: 0, m, n, k: m };
    check(vkgemm_plan_create(context, &problem, none, &mut plan, error));
    let mut workspace = 0;
    check(vkgemm_plan_workspace_bytes(plan, &mut workspace));
    let mut buffers = [2 * m * m, 2 * m * n, 2 * m * n, workspace].map(|bytes| app_create_buffer(app, bytes));
    let [a, b, d] = [0, 1, 2].map(|i| slice::from_raw_parts_mut(buffers[i].data, buffers[i].bytes as usize / 2));
    for (i, x) in a.iter_mut().enumerate() { *x = if i % (m as usize + 1) == 0 { 0x3C00 } else { 0 } } // 1, as f16
    for (i, x) in b.iter_mut().enumerate() { *x = 0x3C00 + (i % 1000) as u16 } // 1 to 2
    let mut operands = Operands { struct_size: size_of::<Operands>() as u32, reserved: 0, spans: [[0; 2]; 12] };
    let spans = [0, 1, 4, 11]; // a, b, d, workspace
    for (buffer, span) in buffers.iter().zip(spans) { operands.spans[span] = [buffer.address, buffer.bytes] }
    let commands = app_begin(app);
    check(vkgemm_plan_record(plan, commands, &operands, none, error));
    app_run(app, commands);
    assert!(d == b, "A is the unit matrix, but D is not B");
    println!("gemm.rs: {} x {} x {} is right", m, n, m);

    for status in [vkgemm_plan_destroy(plan), vkgemm_context_destroy(context), vkgemm_requirements_destroy(needs),
        vkgemm_error_destroy(error)] { assert_eq!(status, 0) }
    for buffer in buffers.iter_mut() { app_destroy_buffer(app, buffer) }
    app_close(app);
} }
