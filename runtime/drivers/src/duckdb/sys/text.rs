//! Conversion of texts for the C API.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_void};

use super::RawError;

/// Converts a text for the engine; fails if it contains a NUL.
///
/// # Errors
/// When it holds a zero byte, which no name or statement may.
pub(super) fn to_c(text: &str) -> Result<CString, RawError> {
    CString::new(text).map_err(|error| {
        let before = text.get(..error.nul_position()).unwrap_or_default();
        // As the engine's parser writes its errors, which counts characters.
        let said = serde_json::json!({
            "exception_type": "Parser",
            "exception_message": "a zero byte stands in the SQL",
            "position": before.chars().count().to_string(),
        });
        RawError(format!("Parser Error: {said}"))
    })
}

/// Copies a text that the engine keeps; empty for a null pointer.
///
/// # Safety
/// `text` is null or ends with a zero byte.
pub(super) unsafe fn copy(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Copies a text that the engine hands over and frees it; `None` for a null pointer.
///
/// # Safety
/// `text` is null, or ends with a zero byte, comes from the engine and is used nowhere else.
pub(super) unsafe fn take(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let copied = copy(text);
        libduckdb_sys::duckdb_free(text.cast::<c_void>());
        Some(copied)
    }
}

/// Converts bytes of the engine to a text, replacing invalid UTF-8.
pub(super) fn lossy(bytes: &[u8]) -> String {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    }
}
