//! Types of columns, read once per result.

use std::fmt::Write as _;

use libduckdb_sys as ffi;

use watershed_dialect::{DuckDb, Quoting as _};

use super::text;

/// The type of a column: name, and memory layout of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::duckdb) struct Shape {
    pub(super) layout: Layout,
    /// The engine's name of the type.
    pub(in crate::duckdb) name: String,
}

/// The memory layout of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layout {
    Null,
    Boolean,
    Integer(Width),
    Float,
    Double,
    /// A decimal: an integer of this width, with `scale` digits after the decimal point.
    Decimal {
        width: Width,
        scale: u8,
    },
    Text,
    Blob,
    Bits,
    Uuid,
    Date,
    Time(Tick),
    TimeWithOffset,
    Timestamp(Tick),
    TimestampUtc,
    Interval,
    Enum {
        width: Width,
        values: Vec<String>,
    },
    List(Box<Shape>),
    Array(Box<Shape>, usize),
    Struct(Vec<(String, Shape)>),
    Map(Box<Shape>, Box<Shape>),
    Union(Vec<(String, Shape)>),
    /// A type whose values can't be read outside the engine.
    Opaque,
}

/// The width of an integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    U128,
}

/// The unit of a time type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tick {
    Second,
    Milli,
    Micro,
    Nano,
}

impl Shape {
    /// Returns true if values of this type can be read.
    pub(in crate::duckdb) fn is_showable(&self) -> bool {
        match &self.layout {
            Layout::Opaque => false,
            Layout::List(item) | Layout::Array(item, _) => item.is_showable(),
            Layout::Struct(fields) | Layout::Union(fields) => fields.iter().all(|(_, f)| f.is_showable()),
            Layout::Map(key, value) => key.is_showable() && value.is_showable(),
            _ => true,
        }
    }

    /// Reads a type and frees its handle.
    ///
    /// # Safety
    /// `raw` comes from the engine and is used nowhere else.
    pub(super) unsafe fn take(raw: ffi::duckdb_logical_type) -> Self {
        let handle = Handle(raw);
        let (layout, mut name) = handle.read();
        // SAFETY: the handle is live; the text is handed over to us.
        if let Some(alias) = unsafe { text::take(ffi::duckdb_logical_type_get_alias(handle.0)) } {
            name = alias;
        }
        Self { layout, name }
    }
}

/// The C API's handle of a type, freed when dropped.
struct Handle(ffi::duckdb_logical_type);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: rule 1.
        unsafe { ffi::duckdb_destroy_logical_type(&mut self.0) };
    }
}

impl Handle {
    fn read(&self) -> (Layout, String) {
        // SAFETY: the handle is live.
        let id = unsafe { ffi::duckdb_get_type_id(self.0) };
        match id {
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_DECIMAL => self.read_decimal(),
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_ENUM => self.read_enum(),
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_LIST => {
                // SAFETY: the handle is a live list type.
                let item = unsafe { Shape::take(ffi::duckdb_list_type_child_type(self.0)) };
                let name = format!("{}[]", item.name);
                (Layout::List(Box::new(item)), name)
            }
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_ARRAY => {
                // SAFETY: the handle is a live array type.
                let (item, size) = unsafe {
                    let item = Shape::take(ffi::duckdb_array_type_child_type(self.0));
                    (item, ffi::duckdb_array_type_array_size(self.0) as usize)
                };
                let name = format!("{}[{size}]", item.name);
                (Layout::Array(Box::new(item), size), name)
            }
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_MAP => {
                // SAFETY: the handle is a live map type.
                let (key, value) = unsafe {
                    let key = Shape::take(ffi::duckdb_map_type_key_type(self.0));
                    (key, Shape::take(ffi::duckdb_map_type_value_type(self.0)))
                };
                let name = format!("MAP({}, {})", key.name, value.name);
                (Layout::Map(Box::new(key), Box::new(value)), name)
            }
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_STRUCT => self.read_struct(),
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_UNION => self.read_union(),
            id => simple(id),
        }
    }

    fn read_decimal(&self) -> (Layout, String) {
        // SAFETY: the handle is a live decimal type.
        let (digits, scale, storage) = unsafe {
            (
                ffi::duckdb_decimal_width(self.0),
                ffi::duckdb_decimal_scale(self.0),
                ffi::duckdb_decimal_internal_type(self.0),
            )
        };
        let width = match storage {
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_SMALLINT => Width::I16,
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_INTEGER => Width::I32,
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_BIGINT => Width::I64,
            _ => Width::I128,
        };
        (
            Layout::Decimal { width, scale },
            format!("DECIMAL({digits},{scale})"),
        )
    }

    fn read_enum(&self) -> (Layout, String) {
        // SAFETY: the handle is a live enum type, indexes are below its size, texts are handed over to us.
        let (values, storage) = unsafe {
            let values: Vec<String> = (0..u64::from(ffi::duckdb_enum_dictionary_size(self.0)))
                .map(|index| text::take(ffi::duckdb_enum_dictionary_value(self.0, index)).unwrap_or_default())
                .collect();
            (values, ffi::duckdb_enum_internal_type(self.0))
        };
        let width = match storage {
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_UTINYINT => Width::U8,
            ffi::DUCKDB_TYPE_DUCKDB_TYPE_USMALLINT => Width::U16,
            _ => Width::U32,
        };
        (Layout::Enum { width, values }, "ENUM".to_owned())
    }

    fn read_struct(&self) -> (Layout, String) {
        // SAFETY: the handle is a live struct type, indexes are below its count, names and types are handed over.
        let fields: Vec<_> = unsafe {
            (0..ffi::duckdb_struct_type_child_count(self.0))
                .map(|index| {
                    let name = text::take(ffi::duckdb_struct_type_child_name(self.0, index));
                    let shape = Shape::take(ffi::duckdb_struct_type_child_type(self.0, index));
                    (name.unwrap_or_default(), shape)
                })
                .collect()
        };
        let name = named("STRUCT", &fields);
        (Layout::Struct(fields), name)
    }

    fn read_union(&self) -> (Layout, String) {
        // SAFETY: the handle is a live union type, indexes are below its count, names and types are handed over.
        let members: Vec<_> = unsafe {
            (0..ffi::duckdb_union_type_member_count(self.0))
                .map(|index| {
                    let name = text::take(ffi::duckdb_union_type_member_name(self.0, index));
                    let shape = Shape::take(ffi::duckdb_union_type_member_type(self.0, index));
                    (name.unwrap_or_default(), shape)
                })
                .collect()
        };
        let name = named("UNION", &members);
        (Layout::Union(members), name)
    }
}

/// Formats a composite type: `STRUCT(a INTEGER, "b c" VARCHAR)`.
fn named(kind: &str, fields: &[(String, Shape)]) -> String {
    let mut out = format!("{kind}(");
    for (at, (name, shape)) in fields.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let name = if plain { name.clone() } else { DuckDb.name(name) };
        // Writing to a string can't fail.
        let _ = write!(out, "{separator}{name} {}", shape.name);
    }
    out.push(')');
    out
}

/// Returns layout and name of a type without parameters.
fn simple(id: ffi::DUCKDB_TYPE) -> (Layout, String) {
    let (layout, name) = match id {
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_SQLNULL => (Layout::Null, "NULL"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_BOOLEAN => (Layout::Boolean, "BOOLEAN"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TINYINT => (Layout::Integer(Width::I8), "TINYINT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_SMALLINT => (Layout::Integer(Width::I16), "SMALLINT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_INTEGER => (Layout::Integer(Width::I32), "INTEGER"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_BIGINT => (Layout::Integer(Width::I64), "BIGINT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT => (Layout::Integer(Width::I128), "HUGEINT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_UTINYINT => (Layout::Integer(Width::U8), "UTINYINT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_USMALLINT => (Layout::Integer(Width::U16), "USMALLINT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_UINTEGER => (Layout::Integer(Width::U32), "UINTEGER"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT => (Layout::Integer(Width::U64), "UBIGINT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_UHUGEINT => (Layout::Integer(Width::U128), "UHUGEINT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_FLOAT => (Layout::Float, "FLOAT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE => (Layout::Double, "DOUBLE"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR => (Layout::Text, "VARCHAR"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_BLOB => (Layout::Blob, "BLOB"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_BIT => (Layout::Bits, "BIT"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_UUID => (Layout::Uuid, "UUID"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_DATE => (Layout::Date, "DATE"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIME => (Layout::Time(Tick::Micro), "TIME"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIME_NS => (Layout::Time(Tick::Nano), "TIME_NS"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIME_TZ => (Layout::TimeWithOffset, "TIME WITH TIME ZONE"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP => (Layout::Timestamp(Tick::Micro), "TIMESTAMP"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_S => (Layout::Timestamp(Tick::Second), "TIMESTAMP_S"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_MS => (Layout::Timestamp(Tick::Milli), "TIMESTAMP_MS"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_NS => (Layout::Timestamp(Tick::Nano), "TIMESTAMP_NS"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TIMESTAMP_TZ => (Layout::TimestampUtc, "TIMESTAMP WITH TIME ZONE"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_INTERVAL => (Layout::Interval, "INTERVAL"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_BIGNUM => (Layout::Opaque, "BIGNUM"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_GEOMETRY => (Layout::Opaque, "GEOMETRY"),
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_VARIANT => (Layout::Opaque, "VARIANT"),
        _ => (Layout::Opaque, "UNKNOWN"),
    };
    (layout, name.to_owned())
}
