//! Tables and meaning of a statement without a tree, found by tokens.
//!
//! The engine accepts more than it can serialise: a PIVOT without IN, and anything that is not a SELECT. What stands
//! where a table can stand is found by the words before it. It may find a name too many; as refs bind to models only,
//! that rarely matters.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use watershed_dialect::{ENGINE, TableFunction, Words as _};

use super::{
    analysis::{Outcome, SqlAnalysis, TableUse},
    digest::digest,
    files::is_local,
    scope::Ctes,
    token::{Token, TokenKind, tokens},
    words::{Expect, asks_for_table, begins_query, ends_tables, has_from_inside, is_filler},
};

pub(super) fn analyse(statement: &str) -> SqlAnalysis {
    let tokens = significant(statement);
    let mut scan = Scan::new(&tokens);
    scan.run();
    let fingerprint = scan.fingerprint();
    SqlAnalysis {
        outcome: Outcome::Scanned.into(),
        message: String::new(),
        error_at: None,
        tables: scan.tables,
        files: scan.files,
        fingerprint,
        statements: 1,
        names: identifiers(&tokens).into_iter().collect(),
        untold: scan.untold,
    }
}

/// Returns the paths and patterns of local files that a statement names, found by tokens.
#[must_use]
pub fn files_in(statement: &str) -> Vec<String> {
    analyse(statement).files
}

/// Returns the tokens of a statement that name files; of a call, those of its first argument.
pub(super) fn path_places(statement: &str) -> Vec<Token<'_>> {
    let tokens = significant(statement);
    let mut scan = Scan::new(&tokens);
    scan.run();
    let places = std::mem::take(&mut scan.paths);
    let mut named = tokens.into_iter().enumerate().collect::<Vec<_>>();
    named.retain(|(at, _)| places.binary_search(at).is_ok());
    named.into_iter().map(|(_, token)| token).collect()
}

/// Returns all names in a statement, in lower case, including keywords.
pub(super) fn identifiers(tokens: &[Token<'_>]) -> BTreeSet<String> {
    let names = tokens
        .iter()
        .filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Quoted));
    names.map(|token| token.meaning().to_lowercase()).collect()
}

/// Returns the tables that a template names, including refs, and a digest of its tokens with ordinals in place of
/// tables and refs. `refs` maps a byte inside an action to the resource that the action names.
pub(crate) fn template(text: &str, refs: &BTreeMap<usize, &str>) -> (Vec<String>, Vec<u8>) {
    let tokens = significant(text);
    let mut scan = Scan::new(&tokens);
    for (token, hole) in tokens.iter().zip(&mut scan.refs) {
        if token.kind == TokenKind::Action && is_plain_ref(token.text) {
            *hole = refs
                .range(token.range.clone())
                .next()
                .map(|(_, name)| (*name).to_owned());
        }
    }
    scan.run();
    let fingerprint = scan.fingerprint();
    (
        scan.tables.into_iter().map(|table| table.name).collect(),
        fingerprint,
    )
}

/// Returns the tokens of a text that name a table, each as its byte range and the name.
pub(crate) fn table_places(text: &str) -> Vec<(Range<usize>, String)> {
    let tokens = significant(text);
    let mut scan = Scan::new(&tokens);
    scan.run();
    let named = tokens.iter().zip(&scan.holes).filter(|(_, hole)| hole.is_some());
    named
        .map(|(token, _)| (token.range.clone(), token.meaning()))
        .collect()
}

/// Returns the tokens of a statement without comments, and the indices of tokens that end the name of a table or of a
/// table function.
pub(super) fn places(text: &str) -> (Vec<Token<'_>>, Vec<usize>) {
    let tokens = significant(text);
    let mut scan = Scan::new(&tokens);
    scan.run();
    let named = scan.holes.iter().enumerate().filter(|(_, hole)| hole.is_some());
    let mut named: Vec<usize> = named.map(|(at, _)| at).chain(scan.calls.clone()).collect();
    named.sort_unstable();
    (tokens, named)
}

/// Returns true if the name of a table may follow at the end of a text.
pub(crate) fn expects_table(text: &str) -> bool {
    let tokens = significant(text);
    let mut scan = Scan::new(&tokens);
    scan.run();
    scan.depths
        .last()
        .is_some_and(|depth| depth.expect == Expect::Table)
}

/// Returns the tokens of a text without comments.
fn significant(text: &str) -> Vec<Token<'_>> {
    let tokens = tokens(text).into_iter();
    tokens.filter(|token| token.kind != TokenKind::Comment).collect()
}

/// Returns true if an action consists of a call of `ref` alone.
fn is_plain_ref(action: &str) -> bool {
    let inner = action
        .trim_start_matches("{{")
        .trim_start_matches("- ")
        .trim_start();
    inner
        .strip_prefix("ref")
        .is_some_and(|rest| rest.starts_with([' ', '`', '"', '\t']))
        && !inner.contains(['|', '('])
}

/// The state of the scan inside a bracket, or at the top of the statement.
#[derive(Debug, Default)]
struct Depth {
    expect: Expect,
    /// Names of CTEs, in lower case, that are visible from here to the end of the bracket.
    ctes: Vec<String>,
}

struct Scan<'a> {
    tokens: &'a [Token<'a>],
    ctes: Ctes,
    tables: Vec<TableUse>,
    index: BTreeMap<(String, bool), usize>,
    files: Vec<String>,
    /// Functions that read files which the text does not determine.
    untold: Vec<String>,
    /// The index of the table that each token names, if it is the last part of a table's name.
    holes: Vec<Option<usize>>,
    /// The resource that each token refers to, if it is an action that does.
    refs: Vec<Option<String>>,
    /// The indices of tokens that name table functions.
    calls: Vec<usize>,
    /// The indices of tokens that name files.
    paths: Vec<usize>,
    /// The states of the statement and of each open parenthesis.
    depths: Vec<Depth>,
    /// True if the scanned statement is itself a text inside another statement.
    in_text: bool,
}

impl<'a> Scan<'a> {
    fn new(tokens: &'a [Token<'a>]) -> Self {
        let ctes = Ctes::of(tokens);
        let holes = vec![None; tokens.len()];
        let refs = vec![None; tokens.len()];
        Self {
            tokens,
            ctes,
            tables: Vec::new(),
            index: BTreeMap::new(),
            files: Vec::new(),
            untold: Vec::new(),
            holes,
            refs,
            calls: Vec::new(),
            paths: Vec::new(),
            depths: vec![Depth::default()],
            in_text: false,
        }
    }

    fn expect(&mut self, expect: Expect) {
        if let Some(top) = self.depths.last_mut() {
            top.expect = expect;
        }
    }

    /// Returns true if an unqualified name means a CTE.
    fn is_cte(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.depths.iter().any(|depth| depth.ctes.contains(&name))
    }

    fn run(&mut self) {
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            at = self.step(at, token);
        }
    }

    /// Scans one token, or the whole name of a table; returns the index to go on from.
    fn step(&mut self, at: usize, token: &Token<'_>) -> usize {
        let begins = self.ctes.seen_from(at);
        let expected = match self.depths.last_mut() {
            Some(top) => {
                top.ctes.extend_from_slice(begins);
                top.expect
            }
            None => Expect::Anything,
        };
        match token.kind {
            TokenKind::Sign => self.sign(at, token.text, expected),
            TokenKind::Word if asks_for_table(self.tokens, at, expected) => self.expect(Expect::Table),
            TokenKind::Word if expected == Expect::MoreTables && ends_tables(token.text) => {
                self.expect(Expect::Anything);
            }
            TokenKind::Word if expected == Expect::Table && begins_query(token.text) => {
                self.expect(Expect::Anything);
            }
            TokenKind::Word if expected == Expect::Table && is_filler(token.text) => {}
            TokenKind::Text if expected == Expect::Table => {
                self.file(token.meaning());
                self.paths.push(at);
                self.expect(Expect::MoreTables);
            }
            TokenKind::Word | TokenKind::Quoted if expected == Expect::Table => {
                self.expect(Expect::MoreTables);
                return self.name(at);
            }
            TokenKind::Action => self.action(at, expected),
            _ => {}
        }
        at + 1
    }

    fn action(&mut self, at: usize, expected: Expect) {
        if let Some(name) = self.refs.get(at).cloned().flatten() {
            self.table(at, TableUse { name, foreign: false });
        }
        if expected == Expect::Table {
            self.expect(Expect::MoreTables);
        }
    }

    /// Records that a token names a table.
    fn table(&mut self, at: usize, table: TableUse) {
        let tables = &mut self.tables;
        let index = *self
            .index
            .entry((table.name.to_lowercase(), table.foreign))
            .or_insert_with(|| {
                tables.push(table);
                tables.len() - 1
            });
        if let Some(hole) = self.holes.get_mut(at) {
            *hole = Some(index);
        }
    }

    fn sign(&mut self, at: usize, sign: &str, expected: Expect) {
        match sign {
            "(" => {
                let call = at.checked_sub(1).and_then(|before| self.tokens.get(before));
                let inside = match call {
                    Some(call) if has_from_inside(call) => Expect::CallWithFrom,
                    _ if expected == Expect::Table => Expect::Table,
                    _ => Expect::Anything,
                };
                if expected == Expect::Table {
                    self.expect(Expect::MoreTables);
                }
                self.depths.push(Depth {
                    expect: inside,
                    ctes: Vec::new(),
                });
            }
            ")" if self.depths.len() > 1 => {
                self.depths.pop();
            }
            "," if expected == Expect::MoreTables => self.expect(Expect::Table),
            ";" => self.depths = vec![Depth::default()],
            _ => {}
        }
    }

    /// Scans a dotted name, which is a table unless a call follows or a CTE has the name; returns the index to go on
    /// from.
    fn name(&mut self, at: usize) -> usize {
        let mut last = at;
        while self.tokens.get(last + 1).is_some_and(|dot| dot.is_sign("."))
            && self
                .tokens
                .get(last + 2)
                .is_some_and(|part| part.kind != TokenKind::Sign)
        {
            last += 2;
        }
        let Some(token) = self.tokens.get(last) else {
            return last + 1;
        };
        let name = token.meaning();
        // Of `COPY a (b, c)` the brackets hold columns.
        let before = at.checked_sub(1).and_then(|before| self.tokens.get(before));
        let is_copied = before.is_some_and(|word| word.is_word("copy"));
        if !is_copied && self.tokens.get(last + 1).is_some_and(|open| open.is_sign("(")) {
            self.call(last, &name);
        } else if self.tokens.get(last + 1).is_some_and(|sign| sign.is_sign(":")) {
            // An alias: `FROM o: orders`.
            self.expect(Expect::Table);
            return last + 2;
        } else if last > at || !self.is_cte(&name) {
            let foreign = last >= at + 2
                && !self
                    .tokens
                    .get(last - 2)
                    .is_some_and(|schema| schema.meaning().eq_ignore_ascii_case("main"));
            if ENGINE.names_file(&name) {
                self.file(name.clone());
                self.paths.push(last);
            }
            self.table(last, TableUse { name, foreign });
        }
        last + 1
    }

    /// Scans a table function, and records the files or tables that its literal arguments name.
    fn call(&mut self, at: usize, name: &str) {
        self.calls.push(at);
        let called = ENGINE.table_function(name);
        if called == TableFunction::Other {
            return;
        }
        let arguments = self.tokens.get(at + 2..).unwrap_or_default();
        if matches!(called, TableFunction::Files(_)) {
            let first = first_argument(arguments);
            self.paths.extend((at + 2..).take(first));
        }
        let told = texts(arguments).filter(|texts| !texts.iter().any(|text| text.starts_with('~')));
        let Some(texts) = told else {
            self.untold.push(name.to_lowercase());
            return;
        };
        for text in texts {
            match called {
                TableFunction::Files(_) => self.file(text),
                TableFunction::Table => self.named(text),
                TableFunction::Query => self.query(&text),
                TableFunction::Other => {}
            }
        }
    }

    /// Records a table that a text names.
    fn named(&mut self, name: String) {
        let tables = &mut self.tables;
        self.index.entry((name.to_lowercase(), false)).or_insert_with(|| {
            tables.push(TableUse { name, foreign: false });
            tables.len() - 1
        });
    }

    /// Scans a statement that is a text inside another one; texts inside that are not scanned.
    fn query(&mut self, text: &str) {
        let tokens = significant(text);
        let mut inner = Scan::new(&tokens);
        inner.in_text = true;
        if !self.in_text {
            inner.run();
        }
        inner.tables.into_iter().for_each(|table| self.named(table.name));
        inner.files.into_iter().for_each(|path| self.file(path));
        self.untold.append(&mut inner.untold);
    }

    fn file(&mut self, path: String) {
        if is_local(&path) && !self.files.contains(&path) {
            self.files.push(path);
        }
    }

    fn fingerprint(&self) -> Vec<u8> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"tokens\n");
        let end = self
            .tokens
            .iter()
            .rposition(|token| !token.is_sign(";"))
            .map_or(0, |last| last + 1);
        let mut before = None;
        for (token, hole) in self.tokens.iter().zip(&self.holes).take(end) {
            // What an action yields joins with what touches it.
            let touches = before.is_some_and(|(end, action)| {
                end == token.range.start && (action || token.kind == TokenKind::Action)
            });
            let text = match hole {
                Some(index) => format!("#{index}"),
                None if token.kind == TokenKind::Action => squeezed(token.text),
                None => token.text.to_owned(),
            };
            let tag = [u8::from(touches), u8::from(hole.is_some())];
            hasher
                .update(&tag)
                .update(&(text.len() as u64).to_le_bytes())
                .update(text.as_bytes());
            before = Some((token.range.end, token.kind == TokenKind::Action));
        }
        digest(&hasher).to_vec()
    }
}

/// Returns an action with runs of blanks outside its texts reduced to one.
fn squeezed(action: &str) -> String {
    let mut squeezed = String::with_capacity(action.len());
    let mut quote = None;
    for c in action.chars() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => {
                if !squeezed.ends_with(' ') {
                    squeezed.push(' ');
                }
                continue;
            }
            (None, '"' | '`') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        squeezed.push(c);
    }
    squeezed.replace("{{ ", "{{").replace(" }}", "}}")
}

/// Returns the number of tokens in the first argument of a call.
fn first_argument(arguments: &[Token<'_>]) -> usize {
    let mut open = 0_usize;
    let ends = |token: &Token<'_>| {
        let is_end = open == 0 && (token.is_sign(",") || token.is_sign(")"));
        if ["(", "["].iter().any(|sign| token.is_sign(sign)) {
            open += 1;
        } else if [")", "]"].iter().any(|sign| token.is_sign(sign)) {
            open = open.saturating_sub(1);
        }
        is_end
    };
    arguments.iter().position(ends).unwrap_or(arguments.len())
}

/// Returns the first argument of a call as texts, if it is a text or a list of them; none if it has to be computed.
fn texts(arguments: &[Token<'_>]) -> Option<Vec<String>> {
    let mut rest = arguments;
    let mut texts = Vec::new();
    let is_list = take_sign(&mut rest, "[");
    loop {
        texts.push(take_text(&mut rest)?);
        if !is_list || !take_sign(&mut rest, ",") {
            break;
        }
    }
    if is_list && !take_sign(&mut rest, "]") {
        return None;
    }
    take_cast(&mut rest);
    let next = rest.first()?;
    (next.is_sign(")") || next.is_sign(",")).then_some(texts)
}

/// Takes a text, or a name that the engine reads as text because no table precedes it.
fn take_text(rest: &mut &[Token<'_>]) -> Option<String> {
    let (first, mut after) = rest.split_first()?;
    let mut text = match first.kind {
        TokenKind::Text | TokenKind::Quoted => first.meaning(),
        TokenKind::Word if !ENGINE.is_computed(first.text) => first.meaning(),
        _ => return None,
    };
    while first.kind != TokenKind::Text
        && let [dot, part, beyond @ ..] = after
        && dot.is_sign(".")
        && matches!(part.kind, TokenKind::Word | TokenKind::Quoted)
    {
        text = format!("{text}.{}", part.meaning());
        after = beyond;
    }
    *rest = after;
    take_cast(rest);
    Some(text)
}

/// Skips a cast to text or to a list of texts.
fn take_cast(rest: &mut &[Token<'_>]) {
    while let [sign, word, after @ ..] = rest
        && sign.is_sign("::")
        && ENGINE.is_text_type(word.text)
    {
        *rest = after;
        if let [open, close, after @ ..] = rest
            && open.is_sign("[")
            && close.is_sign("]")
        {
            *rest = after;
        }
    }
}

fn take_sign(rest: &mut &[Token<'_>], sign: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if first.is_sign(sign) => {
            *rest = after;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
