//! Node-API with lifetimes and results of Rust, as far as the addon needs it.

use napi_sys as sys;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::rc::Rc;

/// The result of a function of Node-API; the error is its status.
pub(crate) type Status<T> = Result<T, i32>;

fn check(status: i32) -> Status<()> {
    match status {
        sys::Status::napi_ok => Ok(()),
        status => Err(status),
    }
}

/// An environment: a thread of Node.js with its own heap.
#[derive(Copy, Clone)]
pub(crate) struct Env(sys::napi_env);

/// A call of a function of the addon, with three arguments; missing ones are `undefined`.
pub(crate) struct Call {
    pub(crate) args: [sys::napi_value; 3],
}

/// A function of the addon.
pub(crate) trait Function {
    /// Text of the exception if it fails.
    const FAULT: &'static str;
    fn run(env: Env, call: &Call) -> Status<sys::napi_value>;
}

/// A strong reference to a value of JavaScript; clones share it.
#[derive(Clone)]
pub(crate) struct Reference(Rc<Strong>);

struct Strong {
    env: sys::napi_env,
    reference: sys::napi_ref,
}

impl Drop for Strong {
    fn drop(&mut self) {
        // SAFETY: the reference was created in this environment and is deleted once, on its
        // thread: `Rc` does not leave it.
        unsafe { sys::napi_delete_reference(self.env, self.reference) };
    }
}

/// What the finalizer of an environment's data does.
struct Held<T> {
    data: T,
    end: fn(),
}

/// Frees the data of an environment that ends.
///
/// # Safety
/// `data` is that of [`Env::set_data`].
unsafe extern "C" fn finalize<T>(_: sys::napi_env, data: *mut c_void, _: *mut c_void) {
    // SAFETY: `set_data` made it by `Box::into_raw`, and Node.js finalizes it once.
    let held = unsafe { Box::from_raw(data.cast::<Held<T>>()) };
    (held.end)();
    drop(held);
}

/// Runs a function of the addon, called by Node.js.
///
/// # Safety
/// Node.js calls it with its environment and call.
unsafe extern "C" fn trampoline<F: Function>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> sys::napi_value {
    let env = Env(env);
    let mut call = Call {
        args: [ptr::null_mut(); 3],
    };
    let mut count = call.args.len();
    // SAFETY: all pointers are to living variables, and `count` is the length of `args`.
    let status = unsafe {
        sys::napi_get_cb_info(
            env.0,
            info,
            &raw mut count,
            call.args.as_mut_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    let result = check(status).and_then(|()| F::run(env, &call));
    result.unwrap_or_else(|_| {
        env.throw(F::FAULT);
        ptr::null_mut()
    })
}

impl Env {
    pub(crate) fn new(env: sys::napi_env) -> Env {
        Env(env)
    }

    /// Throws an exception, unless one is pending.
    pub(crate) fn throw(self, message: &str) {
        let message: Vec<u8> = message.bytes().chain([0]).collect();
        // SAFETY: the message ends with a zero byte; Node.js copies it.
        unsafe { sys::napi_throw_type_error(self.0, ptr::null(), message.as_ptr().cast()) };
    }

    /// Sets the data of the environment, and what happens when it ends.
    pub(crate) fn set_data<T>(self, data: T, end: fn()) -> Status<()> {
        let held = Box::into_raw(Box::new(Held { data, end }));
        // SAFETY: the pointer is that of a box, which the finalizer frees.
        check(unsafe {
            sys::napi_set_instance_data(self.0, held.cast(), Some(finalize::<T>), ptr::null_mut())
        })
    }

    /// The data of the environment, which is of the type that was set.
    pub(crate) fn data<T>(self) -> Status<*mut T> {
        let mut data = ptr::null_mut();
        // SAFETY: `data` is a living variable.
        check(unsafe { sys::napi_get_instance_data(self.0, &raw mut data) })?;
        if data.is_null() {
            return Err(sys::Status::napi_generic_failure);
        }
        // SAFETY: the pointer is that of `set_data`, which the addon calls with one type.
        Ok(unsafe { &raw mut (*data.cast::<Held<T>>()).data })
    }

    /// Adds a function to the exports.
    pub(crate) fn export<F: Function>(self, to: sys::napi_value, name: &CStr) -> Status<()> {
        let mut function = ptr::null_mut();
        // SAFETY: the name ends with a zero byte, and `function` is a living variable.
        check(unsafe {
            sys::napi_create_function(
                self.0,
                name.as_ptr(),
                name.count_bytes() as isize,
                Some(trampoline::<F>),
                ptr::null_mut(),
                &raw mut function,
            )
        })?;
        // SAFETY: both values are of this environment, and the name ends with a zero byte.
        check(unsafe { sys::napi_set_named_property(self.0, to, name.as_ptr(), function) })
    }

    pub(crate) fn number(self, value: sys::napi_value) -> Status<u32> {
        let mut number = 0;
        // SAFETY: `number` is a living variable; a wrong type gives a status.
        check(unsafe { sys::napi_get_value_uint32(self.0, value, &raw mut number) })?;
        Ok(number)
    }

    pub(crate) fn undefined(self) -> Status<sys::napi_value> {
        let mut value = ptr::null_mut();
        // SAFETY: `value` is a living variable.
        check(unsafe { sys::napi_get_undefined(self.0, &raw mut value) })?;
        Ok(value)
    }

    pub(crate) fn is_function(self, value: sys::napi_value) -> Status<bool> {
        let mut kind = sys::ValueType::napi_undefined;
        // SAFETY: `kind` is a living variable.
        check(unsafe { sys::napi_typeof(self.0, value, &raw mut kind) })?;
        Ok(kind == sys::ValueType::napi_function)
    }

    /// A string of these units.
    pub(crate) fn utf16(self, units: &[u16]) -> Status<sys::napi_value> {
        let mut value = ptr::null_mut();
        // SAFETY: the pointer and the length are those of a slice; Node.js copies it.
        check(unsafe {
            sys::napi_create_string_utf16(
                self.0,
                units.as_ptr(),
                units.len() as isize,
                &raw mut value,
            )
        })?;
        Ok(value)
    }

    pub(crate) fn empty(self) -> Status<sys::napi_value> {
        self.utf16(&[])
    }

    /// Reads the units of a string into a buffer.
    pub(crate) fn read_utf16(self, value: sys::napi_value, units: &mut Vec<u16>) -> Status<()> {
        const FIRST: usize = 1_024;
        units.clear();
        units.reserve(FIRST);
        loop {
            let room = units.capacity();
            let mut len = 0;
            // SAFETY: the pointer has room for `room` units, which Node.js fills at most, the
            // last of them with zero.
            check(unsafe {
                sys::napi_get_value_string_utf16(
                    self.0,
                    value,
                    units.as_mut_ptr(),
                    room,
                    &raw mut len,
                )
            })?;
            if len + 1 < room {
                // SAFETY: Node.js wrote `len` units.
                unsafe { units.set_len(len) };
                return Ok(());
            }
            // The text may be cut: ask for its length.
            // SAFETY: without a buffer only the length is written.
            check(unsafe {
                sys::napi_get_value_string_utf16(self.0, value, ptr::null_mut(), 0, &raw mut len)
            })?;
            units.reserve(len + 2);
        }
    }

    /// Keeps a value alive.
    pub(crate) fn reference(self, value: sys::napi_value) -> Status<Reference> {
        let mut reference = ptr::null_mut();
        // SAFETY: `reference` is a living variable; a wrong type gives a status.
        check(unsafe { sys::napi_create_reference(self.0, value, 1, &raw mut reference) })?;
        Ok(Reference(Rc::new(Strong {
            env: self.0,
            reference,
        })))
    }

    fn value_of(self, reference: &Reference) -> Status<sys::napi_value> {
        let mut value = ptr::null_mut();
        // SAFETY: the reference is strong, of this environment, and not deleted.
        check(unsafe {
            sys::napi_get_reference_value(self.0, reference.0.reference, &raw mut value)
        })?;
        Ok(value)
    }

    /// The words of an `ArrayBuffer`: none if it was detached.
    pub(crate) fn words(self, buffer: &Reference) -> Status<&'static mut [u32]> {
        let value = self.value_of(buffer)?;
        let (mut data, mut len) = (ptr::null_mut(), 0);
        // SAFETY: both are living variables; a wrong type gives a status.
        check(unsafe {
            sys::napi_get_arraybuffer_info(self.0, value, &raw mut data, &raw mut len)
        })?;
        let data = data.cast::<u32>();
        if data.is_null() || !data.is_aligned() {
            return Ok(&mut []);
        }
        // SAFETY: the buffer has `len` bytes and its start is aligned. JavaScript, which alone
        // could detach it, does not run before the caller of this function is done with it.
        Ok(unsafe { std::slice::from_raw_parts_mut(data, len / size_of::<u32>()) })
    }

    /// Calls a function of JavaScript . An exception is a failure, and is cleared.
    pub(crate) fn call(
        self,
        function: &Reference,
        args: &[sys::napi_value],
    ) -> Status<sys::napi_value> {
        let function = self.value_of(function)?;
        let this = self.undefined()?;
        let mut result = ptr::null_mut();
        // SAFETY: all values are of this environment, and the length is that of the slice.
        let status = unsafe {
            sys::napi_call_function(
                self.0,
                this,
                function,
                args.len(),
                args.as_ptr(),
                &raw mut result,
            )
        };
        if status == sys::Status::napi_pending_exception {
            let mut exception = ptr::null_mut();
            // SAFETY: `exception` is a living variable.
            check(unsafe { sys::napi_get_and_clear_last_exception(self.0, &raw mut exception) })?;
        }
        check(status)?;
        Ok(result)
    }

    pub(crate) fn double(self, value: sys::napi_value) -> Status<f64> {
        let mut number = 0.0;
        // SAFETY: `number` is a living variable; a wrong type gives a status.
        check(unsafe { sys::napi_get_value_double(self.0, value, &raw mut number) })?;
        Ok(number)
    }

    pub(crate) fn number_value(self, number: u32) -> Status<sys::napi_value> {
        let mut value = ptr::null_mut();
        // SAFETY: `value` is a living variable.
        check(unsafe { sys::napi_create_uint32(self.0, number, &raw mut value) })?;
        Ok(value)
    }

    /// Frees what a function makes of JavaScript's values when it ends.
    pub(crate) fn scoped<T>(self, run: impl FnOnce() -> Status<T>) -> Status<T> {
        let mut scope = ptr::null_mut();
        // SAFETY: `scope` is a living variable.
        check(unsafe { sys::napi_open_handle_scope(self.0, &raw mut scope) })?;
        let result = run();
        // SAFETY: the scope was opened here and is closed once.
        check(unsafe { sys::napi_close_handle_scope(self.0, scope) })?;
        result
    }
}
