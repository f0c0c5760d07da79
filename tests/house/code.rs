//! Source as words: no comments, no literals, no tests.

/// Returns true for a name or a keyword.
pub(crate) fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The names and signs of code, `::` as one.
pub(crate) fn words(code: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let in_word = |sign: char| sign.is_alphanumeric() || sign == '_';
        let end = if in_word(first) {
            rest.find(|sign| !in_word(sign)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// The text without comments and literals.
pub(crate) fn code_of(text: &str) -> String {
    parts(text).0
}

/// The texts between quotes in code, as they are written there, in their order.
pub(crate) fn literals(text: &str) -> Vec<&str> {
    parts(text).1
}

/// Takes code and texts between quotes apart.
fn parts(text: &str) -> (String, Vec<&str>) {
    let mut code = String::with_capacity(text.len());
    let mut literals = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let raw = raw_string(rest).filter(|_| !code.ends_with(|sign: char| sign.is_alphanumeric()));
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' || raw.is_some() {
            let end = raw.unwrap_or_else(|| string(rest));
            literals.push(&rest[..end]);
            end
        } else if first == '\'' {
            character(rest)
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        code.push(' ');
        rest = &rest[skipped..];
    }
    (code, literals)
}

/// The length of the raw string that a text begins with.
fn raw_string(text: &str) -> Option<usize> {
    let opening = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = opening.len() - opening.trim_start_matches('#').len();
    let body = opening[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let before = text.len() - body.len();
    Some(
        body.find(&closing)
            .map_or(text.len(), |end| before + end + closing.len()),
    )
}

/// The length of the string that a text begins with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the character, or of the sign of a lifetime, that a text begins with.
fn character(text: &str) -> usize {
    let mut signs = text.char_indices().skip(1);
    match signs.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(1, |end| 3 + end + 1),
        Some((at, sign)) if text[at + sign.len_utf8()..].starts_with('\'') => at + sign.len_utf8() + 1,
        _ => 1,
    }
}

/// The code without modules that are compiled for tests alone.
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        let (before, marked) = rest.split_at(at);
        kept.push_str(before);
        let ends = marked.find(['{', ';']);
        let end = match ends.filter(|end| marked[*end..].starts_with('{')) {
            Some(opening) => closing(marked, opening),
            None => ends.map_or(marked.len(), |end| end + 1),
        };
        rest = &marked[end..];
    }
    kept + rest
}

/// The place behind the brace that closes the one at `opening`.
pub(crate) fn closing(code: &str, opening: usize) -> usize {
    let mut depth = 0_usize;
    for (at, sign) in code[opening..].char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return opening + at + 1;
        }
    }
    code.len()
}
