//! The settings as a table for people, made from the same list that is parsed.

use std::fmt::Write;

use clap::Arg;

use super::fake::FAKE;
use super::flags::{EXPLAIN, OUTSCALE, PLAN, REHEARSAL};
use super::parse::documented;

/// The settings of `joiner run`, and what the other commands have beyond them, as markdown.
pub fn table() -> String {
    let documented = documented();
    let mut text = String::new();
    let mut heading = None;
    let arguments = |name: &str| documented.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
    let rehearsal = arguments("simulate").filter(|arg| arg.get_help_heading() == Some(REHEARSAL));
    let plan = arguments("plan").filter(|arg| arg.get_help_heading() == Some(PLAN));
    let explain = arguments("explain").filter(|arg| arg.get_help_heading() == Some(EXPLAIN));
    let fake = arguments("fake").filter(|arg| arg.get_help_heading() == Some(FAKE));
    let mut all = arguments("run")
        .chain(rehearsal)
        .chain(plan)
        .chain(explain)
        .chain(fake)
        .filter(|arg| arg.get_id() != "help")
        .collect::<Vec<_>>();
    // Stable: by heading in order of appearance, and within it in order of declaration.
    let headings = all.iter().map(|arg| arg.get_help_heading()).collect::<Vec<_>>();
    all.sort_by_key(|arg| headings.iter().position(|heading| *heading == arg.get_help_heading()));
    for arg in all {
        if heading != arg.get_help_heading() {
            heading = arg.get_help_heading();
            let title = match heading {
                Some(OUTSCALE) => {
                    "Outscale (`--cloud outscale`; keys, region and endpoint as Outscale's own tools read them: `OSC_ACCESS_KEY`, `OSC_SECRET_KEY`, `OSC_REGION`, `OSC_ENDPOINT_API`, `OSC_PROFILE`, `OSC_CONFIG_FILE`)"
                }
                Some(REHEARSAL) => "Rehearsal (`joiner simulate`, besides the decisions above)",
                Some(PLAN) => "Plan (`joiner plan`, besides the decisions above)",
                Some(EXPLAIN) => "Explanation (`joiner explain`, besides those of a plan)",
                Some(FAKE) => "Fake (`joiner fake`)",
                other => other.unwrap_or("Other"),
            };
            let gap = if text.is_empty() { "" } else { "\n" };
            // Writing to a string does not fail.
            let _ = write!(text, "{gap}**{title}**\n\n| flag | variable | default | meaning |\n|---|---|---|---|\n");
        }
        text.push_str(&row(arg));
    }
    text
}

fn row(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default().join(" ");
    let flag = match arg.get_long() {
        Some(long) if names == "BOOL" => format!("`--{long}`"),
        Some(long) => format!("`--{long} {names}`"),
        None if arg.is_required_set() => format!("`<{names}>`"),
        None => format!("`[{names}]`"),
    };
    let variable = arg.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
    let default = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",");
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let (meaning, said) = help.split_once(" Default: ").unwrap_or((&help, ""));
    let default = match (default.is_empty(), said.is_empty()) {
        (false, _) => format!("`{}`", default.replace(',', ", ")),
        (true, false) => said.to_owned(),
        (true, true) => String::new(),
    };
    let cells = [flag, variable, default, meaning.trim_end_matches('.').to_owned()];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}
