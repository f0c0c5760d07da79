//! The variables of a theme, and the recognition of colours.

/// Variables with fixed names; others begin with one of [`PREFIXES`].
pub(super) const VARIABLES: [&str; 42] = [
    "primary",
    "secondary",
    "primary-foreground",
    "secondary-foreground",
    "background",
    "foreground",
    "surface",
    "card",
    "card-foreground",
    "muted",
    "muted-foreground",
    "accent",
    "accent-foreground",
    "border",
    "input",
    "ring",
    "ring-focus",
    "ring-offset",
    "tooltip",
    "destructive",
    "destructive-foreground",
    "radius",
    "popover",
    "popover-foreground",
    "popover-accent",
    "popover-footer",
    "kpi-positive",
    "kpi-negative",
    "surface-background",
    "surface-base",
    "surface-card",
    "surface-muted",
    "surface-subtle",
    "surface-overlay",
    "surface-hover",
    "surface-active",
    "surface-header",
    "fg-primary",
    "fg-secondary",
    "fg-muted",
    "fg-accent",
    "fg-inverse",
];

/// Prefixes of groups of variables.
const PREFIXES: [&str; 8] = [
    "surface-",
    "fg-",
    "accent-",
    "icon-",
    "popover-",
    "ring-",
    "destructive-",
    "muted-",
];

/// Prefixes of numbered chart colours, with the highest number of each.
const SCALES: [(&str, u32); 3] = [
    ("color-sequential-", 9),
    ("color-diverging-", 11),
    ("color-qualitative-", 24),
];

pub(super) fn is_variable(name: &str) -> bool {
    let in_scale = |(prefix, most): &(&str, u32)| {
        let number = name.strip_prefix(prefix).and_then(|rest| rest.parse().ok());
        number.is_some_and(|number: u32| (1..=*most).contains(&number))
    };
    let grouped = |prefix: &&str| name.strip_prefix(*prefix).is_some_and(|rest| !rest.is_empty());
    VARIABLES.contains(&name) || SCALES.iter().any(in_scale) || PREFIXES.iter().any(grouped)
}

/// Returns the current names for a deprecated variable; empty if the variable is current.
pub(super) fn renamed(name: &str) -> &'static [&'static str] {
    match name {
        "background" => &["surface-subtle"],
        "foreground" => &["fg-primary"],
        "surface" => &["surface-background", "surface-base"],
        "card" => &["surface-card"],
        "card-foreground" => &["fg-secondary"],
        "muted" => &["surface-muted"],
        "muted-foreground" => &["fg-muted"],
        "accent" => &["popover-accent"],
        "accent-foreground" => &["fg-accent"],
        "ring" => &["ring-focus"],
        _ => &[],
    }
}

/// CSS functions that yield a colour.
const FUNCTIONS: [&str; 16] = [
    "rgb",
    "rgba",
    "hsl",
    "hsla",
    "hsv",
    "hsva",
    "hwb",
    "hwba",
    "lab",
    "lch",
    "oklab",
    "oklch",
    "color",
    "color-mix",
    "var",
    "light-dark",
];

pub(super) fn is_colour(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    // The format takes digits with and without their sign.
    let digits = text.strip_prefix('#');
    let is_digits = digits.unwrap_or(&text).chars().all(|c| c.is_ascii_hexdigit());
    if digits.is_some() || is_digits {
        return is_digits && matches!(digits.unwrap_or(&text).len(), 3 | 4 | 6 | 8);
    }
    match text.split_once('(') {
        Some((function, rest)) => FUNCTIONS.contains(&function) && rest.ends_with(')') && rest.len() > 1,
        None => NAMES.split_whitespace().any(|name| name == text),
    }
}

/// Named colours of CSS.
const NAMES: &str = "
    aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet brown
    burlywood cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson currentcolor cyan darkblue
    darkcyan darkgoldenrod darkgray darkgreen darkgrey darkkhaki darkmagenta darkolivegreen darkorange
    darkorchid darkred darksalmon darkseagreen darkslateblue darkslategray darkslategrey darkturquoise
    darkviolet deeppink deepskyblue dimgray dimgrey dodgerblue firebrick floralwhite forestgreen fuchsia
    gainsboro ghostwhite gold goldenrod gray green greenyellow grey honeydew hotpink indianred indigo ivory
    khaki lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan lightgoldenrodyellow
    lightgray lightgreen lightgrey lightpink lightsalmon lightseagreen lightskyblue lightslategray
    lightslategrey lightsteelblue lightyellow lime limegreen linen magenta maroon mediumaquamarine mediumblue
    mediumorchid mediumpurple mediumseagreen mediumslateblue mediumspringgreen mediumturquoise mediumvioletred
    midnightblue mintcream mistyrose moccasin navajowhite navy oldlace olive olivedrab orange orangered orchid
    palegoldenrod palegreen paleturquoise palevioletred papayawhip peachpuff peru pink plum powderblue purple
    rebeccapurple red rosybrown royalblue saddlebrown salmon sandybrown seagreen seashell sienna silver skyblue
    slateblue slategray slategrey snow springgreen steelblue tan teal thistle tomato transparent turquoise
    violet wheat white whitesmoke yellow yellowgreen";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_recognised() {
        for text in [
            "#fff",
            "#1F6FEB",
            "#1f6feb80",
            "teal",
            "RebeccaPurple",
            "hsl(212, 84%, 52%)",
            "oklch(60% 0.1 200)",
            "transparent",
            "0AA5A5",
            "abc",
            "080c36ff",
            "000000",
            "hsv(100, 50%, 50%)",
            "HWBA(100, 50%, 50%, 0.5)",
        ] {
            assert!(is_colour(text), "{text}");
        }
        for text in [
            "",
            "#ff",
            "#ggg",
            "teel",
            "rgb(1,2,3",
            "blur(2px)",
            "12px",
            "12",
            "abcde",
            "abcdefabcd",
        ] {
            assert!(!is_colour(text), "{text}");
        }
    }

    #[test]
    fn numbered_variables_end_where_the_scale_does() {
        for name in [
            "color-sequential-9",
            "color-qualitative-24",
            "fg-anything",
            "primary",
        ] {
            assert!(is_variable(name), "{name}");
        }
        for name in [
            "color-sequential-10",
            "color-sequential-0",
            "color-diverging-x",
            "fg-",
            "primry",
        ] {
            assert!(!is_variable(name), "{name}");
        }
    }
}
