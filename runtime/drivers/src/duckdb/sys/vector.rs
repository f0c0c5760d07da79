//! Reading of values from the engine's memory.

use libduckdb_sys as ffi;

use super::shape::{Layout, Shape, Tick, Width};
use super::text;
use crate::olap::{Value, moment};

/// A column of a chunk, or a child of a nested one.
#[derive(Clone, Copy)]
pub(super) struct Vector {
    raw: ffi::duckdb_vector,
    data: *const u8,
    validity: *mut u64,
}

impl Vector {
    pub(super) fn new(raw: ffi::duckdb_vector) -> Self {
        // SAFETY: rule 4; both pointers stay the engine's, and live as long as the chunk.
        let (data, validity) = unsafe {
            (
                ffi::duckdb_vector_get_data(raw),
                ffi::duckdb_vector_get_validity(raw),
            )
        };
        Self {
            raw,
            data: data.cast::<u8>().cast_const(),
            validity,
        }
    }

    /// Returns the value in a row, NULL included.
    ///
    /// # Safety
    /// Rule 4: `shape` is the vector's type, `row` is below its size.
    pub(super) unsafe fn value(&self, shape: &Shape, row: usize) -> Value {
        // SAFETY: a validity mask has a bit for each row; none means that all are valid.
        let valid = self.validity.is_null()
            || unsafe { ffi::duckdb_validity_row_is_valid(self.validity, row as ffi::idx_t) };
        if !valid {
            return Value::Null;
        }
        // SAFETY: the caller's promise.
        unsafe { self.valid_value(&shape.layout, row) }
    }

    /// Returns the value in a row that is not NULL.
    ///
    /// # Safety
    /// As [`Vector::value`].
    unsafe fn valid_value(&self, layout: &Layout, row: usize) -> Value {
        // SAFETY: the caller's promise: each arm reads what the engine keeps for its layout.
        unsafe {
            match layout {
                Layout::Null | Layout::Opaque => Value::Null,
                Layout::Boolean => Value::Boolean(self.read::<u8>(row) != 0),
                Layout::Integer(width) => self.integer(*width, row),
                Layout::Float => Value::Float(self.read(row)),
                Layout::Double => Value::Double(self.read(row)),
                Layout::Decimal { width, scale } => match self.integer(*width, row) {
                    Value::Integer(digits) => Value::Decimal {
                        digits,
                        scale: *scale,
                    },
                    other => other,
                },
                Layout::Text => Value::Text(text::lossy(self.bytes(row))),
                Layout::Blob => Value::Blob(self.bytes(row).to_vec()),
                Layout::Bits => Value::Text(moment::bits(self.bytes(row))),
                Layout::Uuid => Value::Text(self.uuid(row)),
                Layout::Date => Value::Date { days: self.read(row) },
                Layout::Time(tick) => Value::Time {
                    nanos: self.read::<i64>(row).saturating_mul(nanos_per(*tick)),
                },
                Layout::TimeWithOffset => Value::Text(moment::time_with_offset(self.read(row))),
                Layout::Timestamp(tick) => self.timestamp(*tick, false, row),
                Layout::TimestampUtc => self.timestamp(Tick::Micro, true, row),
                Layout::Interval => {
                    let ffi::duckdb_interval { months, days, micros } = self.read(row);
                    Value::Text(moment::interval(months, days, micros))
                }
                Layout::Enum { width, values } => match self.integer(*width, row) {
                    Value::Integer(index) => usize::try_from(index)
                        .ok()
                        .and_then(|index| values.get(index))
                        .map_or(Value::Null, |value| Value::Text(value.clone())),
                    other => other,
                },
                nested => self.nested(nested, row),
            }
        }
    }

    /// Returns the value of a nested type in a row.
    ///
    /// # Safety
    /// As [`Vector::value`].
    unsafe fn nested(&self, layout: &Layout, row: usize) -> Value {
        // SAFETY: the caller's promise; entries of lists lie within their child vector.
        unsafe {
            match layout {
                Layout::List(item) => {
                    let child = Self::new(ffi::duckdb_list_vector_get_child(self.raw));
                    Value::List(self.entry(row).map(|at| child.value(item, at)).collect())
                }
                Layout::Array(item, size) => {
                    let child = Self::new(ffi::duckdb_array_vector_get_child(self.raw));
                    Value::List(
                        (row * size..(row + 1) * size)
                            .map(|at| child.value(item, at))
                            .collect(),
                    )
                }
                Layout::Struct(fields) => Value::Struct(
                    (0..)
                        .zip(fields)
                        .map(|(index, (name, shape))| (name.clone(), self.field(index).value(shape, row)))
                        .collect(),
                ),
                Layout::Map(key, value) => {
                    let entries = Self::new(ffi::duckdb_list_vector_get_child(self.raw));
                    let (keys, values) = (entries.field(0), entries.field(1));
                    let pair = |at| (keys.value(key, at), values.value(value, at));
                    Value::Map(self.entry(row).map(pair).collect())
                }
                // A struct whose first field says which of the others holds.
                Layout::Union(members) => {
                    let tag = usize::from(self.field(0).read::<u8>(row));
                    members.get(tag).map_or(Value::Null, |(_, shape)| {
                        self.field(tag as u64 + 1).value(shape, row)
                    })
                }
                _ => Value::Null,
            }
        }
    }

    /// Returns the child vector of a struct's field.
    ///
    /// # Safety
    /// The vector is a struct with more fields than `index`.
    unsafe fn field(&self, index: ffi::idx_t) -> Self {
        // SAFETY: the caller's promise.
        Self::new(unsafe { ffi::duckdb_struct_vector_get_child(self.raw, index) })
    }

    /// Returns the range of rows in the child vector that belong to a row.
    ///
    /// # Safety
    /// The vector is a list or a map with more rows than `row`.
    unsafe fn entry(&self, row: usize) -> std::ops::Range<usize> {
        // SAFETY: the caller's promise.
        let ffi::duckdb_list_entry { offset, length } = unsafe { self.read(row) };
        offset as usize..(offset + length) as usize
    }

    /// Reads the plain value of type `T` in a row.
    ///
    /// # Safety
    /// The vector holds values of `T`, more than `row`.
    unsafe fn read<T: Copy>(&self, row: usize) -> T {
        // SAFETY: the caller's promise; unaligned, so that nothing is assumed about the engine's memory.
        unsafe { self.data.cast::<T>().add(row).read_unaligned() }
    }

    /// Reads an integer of this width.
    ///
    /// # Safety
    /// The vector holds integers of this width, more than `row`.
    unsafe fn integer(&self, width: Width, row: usize) -> Value {
        // SAFETY: the caller's promise.
        Value::Integer(unsafe {
            match width {
                Width::I8 => self.read::<i8>(row).into(),
                Width::I16 => self.read::<i16>(row).into(),
                Width::I32 => self.read::<i32>(row).into(),
                Width::I64 => self.read::<i64>(row).into(),
                Width::U8 => self.read::<u8>(row).into(),
                Width::U16 => self.read::<u16>(row).into(),
                Width::U32 => self.read::<u32>(row).into(),
                Width::U64 => self.read::<u64>(row).into(),
                Width::I128 => self.read::<i128>(row),
                Width::U128 => {
                    let number = self.read::<u128>(row);
                    match i128::try_from(number) {
                        Ok(number) => number,
                        Err(_) => return Value::Text(number.to_string()),
                    }
                }
            }
        })
    }

    /// Reads a UUID as text.
    ///
    /// # Safety
    /// The vector holds UUIDs, more than `row`.
    unsafe fn uuid(&self, row: usize) -> String {
        // SAFETY: the caller's promise. The engine flips the first bit so that UUIDs sort like integers.
        let bits = unsafe { self.read::<u128>(row) } ^ (1 << 127);
        uuid::Uuid::from_u128(bits).to_string()
    }

    /// Reads a timestamp in this unit.
    ///
    /// # Safety
    /// The vector holds timestamps, more than `row`.
    unsafe fn timestamp(&self, tick: Tick, is_instant: bool, row: usize) -> Value {
        // SAFETY: the caller's promise.
        let ticks: i64 = unsafe { self.read(row) };
        let nanos = match ticks {
            i64::MAX => i128::MAX,
            n if n == -i64::MAX => i128::MIN,
            _ => i128::from(ticks) * i128::from(nanos_per(tick)),
        };
        Value::Timestamp { nanos, is_instant }
    }

    /// Returns the bytes of a text, blob or bit string.
    ///
    /// # Safety
    /// The vector holds such, more than `row`; the bytes live as long as the chunk.
    unsafe fn bytes(&self, row: usize) -> &[u8] {
        // SAFETY: the caller's promise; the text is not changed through the pointer.
        unsafe {
            let text = self.data.cast::<ffi::duckdb_string_t>().cast_mut().add(row);
            let length = ffi::duckdb_string_t_length(text.read_unaligned()) as usize;
            let start = ffi::duckdb_string_t_data(text);
            if start.is_null() || length == 0 {
                return &[];
            }
            std::slice::from_raw_parts(start.cast::<u8>(), length)
        }
    }
}

fn nanos_per(tick: Tick) -> i64 {
    match tick {
        Tick::Second => 1_000_000_000,
        Tick::Milli => 1_000_000,
        Tick::Micro => 1_000,
        Tick::Nano => 1,
    }
}
