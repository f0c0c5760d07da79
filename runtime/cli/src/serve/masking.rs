//! Masking of secrets in the lines of a configuration that its mistakes show.

/// Keys under which somebody may have written a secret, though each is refused.
const KEYS: [&str; 3] = ["client_secret", "secret", "password"];

/// Returns the text with a `*` for each sign of a secret, so that columns stay as they are. Works on files that are no
/// YAML, too.
pub(super) fn without_secrets(text: &str) -> String {
    text.split_inclusive('\n').map(masked).collect()
}

fn masked(line: &str) -> String {
    let mut shown = line.to_owned();
    for key in KEYS {
        let mut from = 0;
        while let Some(at) = shown[from..].find(key).map(|at| from + at) {
            from = at + key.len();
            let is_part = shown[..at].ends_with(|sign: char| sign.is_alphanumeric() || sign == '_');
            let after = shown[from..].trim_start_matches(['"', '\'', ' ']);
            let Some(value) = after.strip_prefix(':').filter(|_| !is_part) else {
                continue;
            };
            let value = &value[..value.find([',', '}', '\n']).unwrap_or(value.len())];
            let star = |sign: char| if sign.is_whitespace() { sign } else { '*' };
            let stars: String = value.chars().map(star).collect();
            let begin = shown.len() - after.len() + 1;
            shown.replace_range(begin..begin + value.len(), &stars);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_files_of_secrets_are_not() {
        for (line, shown) in [
            (
                "  oidc: {client_id: a, client_secret: abc def, x: 1}\n",
                "  oidc: {client_id: a, client_secret: *** ***, x: 1}\n",
            ),
            ("client_secret: abc\n", "client_secret: ***\n"),
            ("\"secret\" : 'a:b'\n", "\"secret\" : *****\n"),
            (
                "header: {secret_name: X-S, secret_file: s.txt}\n",
                "header: {secret_name: X-S, secret_file: s.txt}\n",
            ),
            ("my_secret: a\n", "my_secret: a\n"),
        ] {
            assert_eq!(without_secrets(line), shown);
        }
    }
}
