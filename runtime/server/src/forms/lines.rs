//! Rows as one JSON object per line, keys in the order of the columns.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::Cell;

/// The keys of rows, written once.
#[derive(Debug, Clone)]
pub struct Keys(Vec<Vec<u8>>);

impl Keys {
    /// Returns unique keys for columns of these names: the second `id` becomes `id_1`.
    pub fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut taken = BTreeSet::new();
        let key = |name: &str| {
            let mut candidates =
                std::iter::once(name.to_owned()).chain((1_u32..).map(|number| format!("{name}_{number}")));
            let key = candidates.find(|name| taken.insert(name.clone()));
            let mut written = Vec::new();
            Json::from(key.unwrap_or_default()).write_json(&mut written);
            written.push(b':');
            written
        };
        Self(names.map(key).collect())
    }

    /// Writes a line for each row.
    pub fn write<C: Cell>(&self, out: &mut Vec<u8>, rows: &[Vec<C>]) {
        for row in rows {
            let mut before = b'{';
            for (key, cell) in self.0.iter().zip(row) {
                out.push(before);
                before = b',';
                out.extend_from_slice(key);
                cell.write_json(out);
            }
            let end: &[u8] = if before == b'{' { b"{}\n" } else { b"}\n" };
            out.extend_from_slice(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_objects_in_the_order_of_columns() {
        let mut out = Vec::new();
        let keys = Keys::of(["flights", "carrier", "flights"].into_iter());
        keys.write(
            &mut out,
            &[vec![json!("9007199254740993"), json!("UA"), json!(1)]],
        );
        let expected = "{\"flights\":\"9007199254740993\",\"carrier\":\"UA\",\"flights_1\":1}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
