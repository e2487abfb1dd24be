//! A headless Vulkan application. It declares no more of Vulkan than it calls: programs use `ash` or
//! another binding instead.
use std::os::raw::{c_char, c_int, c_void};
use std::{mem, ptr};

type Handle = *mut c_void;
type Proc = unsafe extern "system" fn(Handle, *const c_char) -> *const c_void;
const NONE: Handle = ptr::null_mut();

#[link(name = "dl")]
extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> Handle;
    fn dlsym(library: Handle, name: *const c_char) -> *const c_void;
}

/// Calls a function of Vulkan whose parameters have the types of the arguments.
macro_rules! vk {
    (@ $argument:expr) => { _ };
    ($app:expr, $name:ident($($argument:expr),*) $(-> $result:ty)?) => {{
        let function = ($app.get)($app.instance, concat!(stringify!($name), "\0").as_ptr().cast());
        assert!(!function.is_null(), "no {}", stringify!($name));
        let function: unsafe extern "system" fn($(vk!(@ $argument)),*) $(-> $result)? = mem::transmute(function);
        function($($argument),*)
    }};
}
macro_rules! check {
    ($app:expr, $name:ident($($argument:expr),*)) => {
        assert_eq!(vk!($app, $name($($argument),*) -> i32), 0, stringify!($name))
    };
}

/// Structures of Vulkan that begin with their type and `pNext`.
macro_rules! structures {
    ($($name:ident = $kind:literal { $($field:ident: $type:ty),* })*) => { $(
        #[repr(C)]
        struct $name { kind: u32, next: *const c_void, $($field: $type),* }
        impl Default for $name {
            // SAFETY: numbers, handles and pointers may be 0.
            fn default() -> Self { Self { kind: $kind, ..unsafe { mem::zeroed() } } }
        }
    )* };
}
structures! {
    ApplicationInfo = 0 { name: Handle, version: u32, engine: Handle, engine_version: u32, api: u32 }
    InstanceCreateInfo = 1 { flags: u32, application: *const ApplicationInfo, layers: [usize; 2], extensions: [usize; 2] }
    QueueCreateInfo = 2 { flags: u32, family: u32, count: u32, priorities: *const f32 }
    DeviceCreateInfo = 3 { flags: u32, queue_count: u32, queues: *const QueueCreateInfo, layers: [usize; 2],
        extension_count: u32, extensions: *const *const c_char, features: Handle }
    SubmitInfo = 4 { waits: [usize; 3], command_count: u32, commands: *const Handle, signals: [usize; 2] }
    MemoryAllocateInfo = 5 { size: u64, type_index: u32 }
    BufferCreateInfo = 12 { flags: u32, size: u64, usage: u32, sharing: u32, families: [usize; 2] }
    CommandPoolCreateInfo = 39 { flags: u32, family: u32 }
    CommandBufferAllocateInfo = 40 { pool: u64, level: u32, count: u32 }
    CommandBufferBeginInfo = 42 { flags: u32, inheritance: Handle }
    MemoryBarrier = 46 { from: u32, to: u32 }
    MemoryAllocateFlagsInfo = 1000060000 { flags: u32, mask: u32 }
    BufferDeviceAddressInfo = 1000244001 { buffer: u64 }
}
const COMPUTE_STAGE: u32 = 0x800;
const HOST_STAGE: u32 = 0x4000;

pub struct App {
    get: Proc,
    pub get_instance_proc_addr: *const c_void,
    pub instance: Handle,
    pub physical_device: Handle,
    pub device: Handle,
    pub queue: Handle,
    pub queue_family: u32,
    pool: u64,
}

/// Memory that host and device see.
pub struct Buffer {
    handle: u64,
    memory: u64,
    pub data: *mut c_void,
    pub address: u64,
    pub bytes: u64,
}

impl App {
    /// An instance and its first device.
    pub unsafe fn new() -> App {
        let loader = dlopen("libvulkan.so.1\0".as_ptr().cast(), 2); // RTLD_NOW
        assert!(!loader.is_null(), "no Vulkan loader");
        let get_instance_proc_addr = dlsym(loader, "vkGetInstanceProcAddr\0".as_ptr().cast());
        let get = mem::transmute::<_, Proc>(get_instance_proc_addr);
        let mut app = App {
            get,
            get_instance_proc_addr,
            instance: NONE,
            physical_device: NONE,
            device: NONE,
            queue: NONE,
            queue_family: 0,
            pool: 0,
        };
        let application = ApplicationInfo { api: 1 << 22 | 3 << 12, ..Default::default() };
        let info = InstanceCreateInfo { application: &application, ..Default::default() };
        check!(app, vkCreateInstance(&info, NONE, &mut app.instance));
        let mut count = 1u32;
        let found = vk!(app, vkEnumeratePhysicalDevices(app.instance, &mut count, &mut app.physical_device) -> i32);
        assert!(found >= 0 && count == 1, "no Vulkan device: {found}");
        app
    }

    /// The device, with what vkgemm requires.
    pub unsafe fn create_device(&mut self, extensions: &[*const c_char], features: *const c_void) {
        let (mut families, mut count) = ([[0u32; 6]; 16], 16u32); // the flags come first
        vk!(self, vkGetPhysicalDeviceQueueFamilyProperties(self.physical_device, &mut count, &mut families));
        let family = families.iter().position(|f| f[0] & 2 != 0).expect("a queue that computes") as u32;
        let queues = QueueCreateInfo { family, count: 1, priorities: &1.0, ..Default::default() };
        let (extension_count, extensions) = (extensions.len() as u32, extensions.as_ptr());
        let info = DeviceCreateInfo {
            next: features,
            queue_count: 1,
            queues: &queues,
            extension_count,
            extensions,
            ..Default::default()
        };
        check!(self, vkCreateDevice(self.physical_device, &info, NONE, &mut self.device));
        vk!(self, vkGetDeviceQueue(self.device, family, 0u32, &mut self.queue));
        self.queue_family = family;
        let info = CommandPoolCreateInfo { family, ..Default::default() };
        check!(self, vkCreateCommandPool(self.device, &info, NONE, &mut self.pool));
    }

    pub unsafe fn create_buffer(&self, bytes: u64) -> Buffer {
        let mut b = Buffer { handle: 0, memory: 0, data: NONE, address: 0, bytes };
        let usage = 0x20020; // STORAGE_BUFFER, SHADER_DEVICE_ADDRESS
        let info = BufferCreateInfo { size: bytes.max(4), usage, ..Default::default() };
        check!(self, vkCreateBuffer(self.device, &info, NONE, &mut b.handle));
        let mut needs = [0u64; 3]; // size, alignment, the bits of types
        vk!(self, vkGetBufferMemoryRequirements(self.device, b.handle, &mut needs));
        let mut memory = [0u32; 130]; // the count, then flags and heap of each type
        vk!(self, vkGetPhysicalDeviceMemoryProperties(self.physical_device, memory.as_mut_ptr()));
        let visible = |i: &u32| needs[2] >> i & 1 != 0 && memory[1 + 2 * *i as usize] & 6 == 6;
        let type_index = (0..memory[0]).find(visible).expect("host-visible memory");
        let flags = MemoryAllocateFlagsInfo { flags: 2, ..Default::default() }; // DEVICE_ADDRESS
        let next = &flags as *const _ as *const c_void;
        let info = MemoryAllocateInfo { next, size: needs[0], type_index, ..Default::default() };
        check!(self, vkAllocateMemory(self.device, &info, NONE, &mut b.memory));
        check!(self, vkBindBufferMemory(self.device, b.handle, b.memory, 0u64));
        check!(self, vkMapMemory(self.device, b.memory, 0u64, u64::MAX, 0u32, &mut b.data));
        let info = BufferDeviceAddressInfo { buffer: b.handle, ..Default::default() };
        b.address = vk!(self, vkGetBufferDeviceAddress(self.device, &info) -> u64);
        b
    }

    pub unsafe fn destroy_buffer(&self, buffer: Buffer) {
        vk!(self, vkDestroyBuffer(self.device, buffer.handle, NONE));
        vk!(self, vkFreeMemory(self.device, buffer.memory, NONE));
    }

    /// A command buffer in the recording state.
    pub unsafe fn begin(&self) -> Handle {
        let info = CommandBufferAllocateInfo { pool: self.pool, count: 1, ..Default::default() };
        let mut commands = NONE;
        check!(self, vkAllocateCommandBuffers(self.device, &info, &mut commands));
        check!(self, vkBeginCommandBuffer(commands, &CommandBufferBeginInfo::default()));
        commands
    }

    /// A barrier from compute shaders to compute shaders.
    pub unsafe fn barrier(&self, commands: Handle) {
        self.barrier_to(commands, COMPUTE_STAGE, 0x60); // SHADER_READ, SHADER_WRITE
    }

    unsafe fn barrier_to(&self, commands: Handle, stage: u32, to: u32) {
        let memory = MemoryBarrier { from: 0x40, to, ..Default::default() }; // SHADER_WRITE
        vk!(self, vkCmdPipelineBarrier(commands, COMPUTE_STAGE, stage, 0u32, 1u32, &memory, 0u32, NONE, 0u32, NONE));
    }

    /// Runs the commands and waits. Afterwards the host sees the results.
    pub unsafe fn run(&self, commands: Handle) {
        self.barrier_to(commands, HOST_STAGE, 0x2000); // HOST_READ
        check!(self, vkEndCommandBuffer(commands));
        let info = SubmitInfo { command_count: 1, commands: &commands, ..Default::default() };
        check!(self, vkQueueSubmit(self.queue, 1u32, &info, 0u64));
        check!(self, vkQueueWaitIdle(self.queue));
    }

    pub unsafe fn close(self) {
        vk!(self, vkDestroyCommandPool(self.device, self.pool, NONE));
        vk!(self, vkDestroyDevice(self.device, NONE));
        vk!(self, vkDestroyInstance(self.instance, NONE));
    }
}
