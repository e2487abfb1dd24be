// vkgemm.h from Rust, with no more of it declared than is used: D = A·B in f16, where A is the unit matrix.
#![allow(dead_code)] // fields that only C reads
use std::{ffi::CStr, mem::size_of, mem::zeroed, os::raw::c_char, os::raw::c_void, ptr::null, ptr::null_mut, slice};
type Handle = *mut c_void; // also of Vulkan, and functions

#[repr(C)] struct App { instance: Handle, physical_device: Handle, device: Handle, get_instance_proc_addr: Handle }
#[repr(C)] struct Buffer { handle: u64, memory: Handle, data: *mut u16, address: u64, bytes: u64 }
#[repr(C)] struct ContextCreateInfo { struct_size: u32, extension_count: u32, extensions: Handle, features: Handle,
    instance: Handle, physical_device: Handle, device: Handle, get_instance_proc_addr: Handle, rest: [Handle; 6] }
#[repr(C)] struct Problem { struct_size: u32, reserved: u32, m: u64, n: u64, k: u64, batch: u64,
    parts: [Handle; 10], limits: [u64; 3] }
#[repr(C)] struct Operands { struct_size: u32, reserved: u32, spans: [[u64; 2]; 12], fingerprints: [u8; 128] }

extern "C" {
    fn app_open() -> *mut App;
    fn app_create_device(app: *mut App, extension_count: u32, extensions: Handle, features: Handle);
    fn app_create_buffer(app: *mut App, bytes: u64) -> Buffer;
    fn app_destroy_buffer(app: *mut App, buffer: *mut Buffer);
    fn app_begin(app: *mut App) -> Handle;
    fn app_run(app: *mut App, commands: Handle);
    fn app_close(app: *mut App);
    fn vkgemm_error_create(error: *mut Handle) -> i32;
    fn vkgemm_error_message(error: Handle, message: *mut *const c_char) -> i32;
    fn vkgemm_error_destroy(error: Handle) -> i32;
    fn vkgemm_requirements_query(instance: Handle, gpu: Handle, get: Handle, needs: *mut Handle, error: Handle) -> i32;
    fn vkgemm_requirements_extensions(needs: Handle, count: *mut u32, names: *mut Handle) -> i32;
    fn vkgemm_requirements_features(needs: Handle, features: *mut Handle) -> i32;
    fn vkgemm_requirements_destroy(needs: Handle) -> i32;
    fn vkgemm_context_create_info_init(info: *mut ContextCreateInfo, size: usize) -> i32;
    fn vkgemm_context_create(info: *const ContextCreateInfo, context: *mut Handle, error: Handle) -> i32;
    fn vkgemm_context_destroy(context: Handle) -> i32;
    fn vkgemm_problem_init(problem: *mut Problem, size: usize) -> i32;
    fn vkgemm_plan_create(context: Handle, problem: *const Problem, config: Handle, plan: *mut Handle, error: Handle) -> i32;
    fn vkgemm_plan_workspace_bytes(plan: Handle, bytes: *mut u64) -> i32;
    fn vkgemm_plan_record(plan: Handle, cmd: Handle, operands: *const Operands, range: Handle, error: Handle) -> i32;
    fn vkgemm_plan_destroy(plan: Handle) -> i32;
    fn vkgemm_operands_init(operands: *mut Operands, size: usize) -> i32;
}

fn main() { unsafe {
    let mut error: Handle = null_mut();
    assert_eq!(vkgemm_error_create(&mut error), 0);
    let check = |status: i32| if status != 0 {
        let mut message: *const c_char = null();
        vkgemm_error_message(error, &mut message);
        panic!("status {}: {}", status, CStr::from_ptr(message).to_string_lossy());
    };
    let app = app_open();
    let (mut needs, mut context, mut plan): (Handle, Handle, Handle) = (null_mut(), null_mut(), null_mut());
    let get = (*app).get_instance_proc_addr;
    check(vkgemm_requirements_query((*app).instance, (*app).physical_device, get, &mut needs, error));
    let mut info: ContextCreateInfo = zeroed();
    check(vkgemm_context_create_info_init(&mut info, size_of::<ContextCreateInfo>()));
    check(vkgemm_requirements_extensions(needs, &mut info.extension_count, &mut info.extensions));
    check(vkgemm_requirements_features(needs, &mut info.features));
    app_create_device(app, info.extension_count, info.extensions, info.features);
    (info.instance, info.physical_device, info.device) = ((*app).instance, (*app).physical_device, (*app).device);
    info.get_instance_proc_addr = get;
    check(vkgemm_context_create(&info, &mut context, error));

    let (m, n) = (40usize, 56usize);
    let mut problem: Problem = zeroed();
    check(vkgemm_problem_init(&mut problem, size_of::<Problem>()));
    (problem.m, problem.n, problem.k) = (m as u64, n as u64, m as u64);
    check(vkgemm_plan_create(context, &problem, null_mut(), &mut plan, error));
    let mut workspace_bytes = 0;
    check(vkgemm_plan_workspace_bytes(plan, &mut workspace_bytes));

    let sizes = [2 * m * m, 2 * m * n, 2 * m * n, workspace_bytes as usize];
    let mut buffers: Vec<Buffer> = sizes.iter().map(|&bytes| app_create_buffer(app, bytes as u64)).collect();
    let a = slice::from_raw_parts_mut(buffers[0].data, m * m);
    let b = slice::from_raw_parts_mut(buffers[1].data, m * n);
    for (i, x) in a.iter_mut().enumerate() { *x = if i / m == i % m { 0x3C00 } else { 0 } } // 1, as f16
    for (i, x) in b.iter_mut().enumerate() { *x = 0x3C00 + (i % 1000) as u16 } // 1 to 2
    let mut operands: Operands = zeroed();
    check(vkgemm_operands_init(&mut operands, size_of::<Operands>()));
    let spans = [0, 1, 4, 11]; // a, b, d, workspace
    for (buffer, span) in buffers.iter().zip(spans) { operands.spans[span] = [buffer.address, buffer.bytes] }
    let commands = app_begin(app);
    check(vkgemm_plan_record(plan, commands, &operands, null_mut(), error));
    app_run(app, commands);
    assert!(slice::from_raw_parts(buffers[2].data, m * n) == b, "A is the unit matrix, but D is not B");
    println!("gemm.rs: {} x {} x {} is right", m, n, m);

    check(vkgemm_plan_destroy(plan));
    check(vkgemm_context_destroy(context));
    check(vkgemm_requirements_destroy(needs));
    check(vkgemm_error_destroy(error));
    for buffer in buffers.iter_mut() { app_destroy_buffer(app, buffer) }
    app_close(app);
} }
