//! The C API as `vkgemm.h` declares it, written from the header by `build.rs`.
//!
//! Names, fields and comments are the header's. Fields whose names are keywords end with an
//! underscore: `type_`, `loop_`. Structures have their C defaults by [`Default`]. In structures a
//! pointer to one structure is an [`Option`] of a reference, and a text is a [`Text`].
#![allow(non_camel_case_types, non_upper_case_globals, missing_docs, rustdoc::all)]

use std::borrow::Cow;
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_void};
use std::{fmt, mem};

// Vulkan's types that the header needs, as vulkan_core.h has them.
pub type VkInstance = *mut c_void;
pub type VkPhysicalDevice = *mut c_void;
pub type VkDevice = *mut c_void;
pub type VkQueue = *mut c_void;
pub type VkCommandBuffer = *mut c_void;
pub type VkPipelineCache = u64;
pub type VkBool32 = u32;
pub type VkDeviceAddress = u64;
pub type VkDeviceSize = u64;
pub type VkResult = i32;
pub type VkDriverId = i32;
pub type VkPhysicalDeviceType = i32;
pub type VkPhysicalDeviceFeatures2 = c_void;
pub type PFN_vkGetInstanceProcAddr = *const c_void;
const VK_UUID_SIZE: usize = 16;

/// The size of the structure `T`, its only value.
#[repr(transparent)]
pub struct StructSize<T>(u32, PhantomData<fn() -> T>);

impl<T> Default for StructSize<T> {
    fn default() -> Self {
        Self(mem::size_of::<T>() as u32, PhantomData)
    }
}
impl<T> Clone for StructSize<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for StructSize<T> {}
impl<T> PartialEq for StructSize<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl<T> fmt::Debug for StructSize<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text of C, or none: `Text::from(c_str)`, `Text::default()`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

// SAFETY: it is a reference that may be null.
unsafe impl Send for Text<'_> {}
unsafe impl Sync for Text<'_> {}

impl<'a> Text<'a> {
    /// The text; empty if there is none.
    pub fn as_str(self) -> Cow<'a, str> {
        if self.0.is_null() {
            return "".into();
        }
        // SAFETY: only C and `from()` make others than null.
        unsafe { CStr::from_ptr(self.0) }.to_string_lossy()
    }
}
impl Default for Text<'_> {
    fn default() -> Self {
        Self(std::ptr::null(), PhantomData)
    }
}
impl<'a> From<&'a CStr> for Text<'a> {
    fn from(text: &'a CStr) -> Self {
        Self(text.as_ptr(), PhantomData)
    }
}
impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

include!(concat!(env!("OUT_DIR"), "/sys.rs"));
