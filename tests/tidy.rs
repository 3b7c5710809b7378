//! The walls of the house, held by reading the sources: who may name whom, how large things may be, and that every door has a plate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// Who may name whom. A room may always name itself.
const WALLS: [(&str, &[&str]); 13] = [
    ("core", &[]),
    ("api", &[]),
    ("telemetry", &["core"]),
    ("clouds", &["core", "api", "licence", "telemetry"]),
    ("cluster", &["core", "api", "licence", "telemetry"]),
    ("actors", &["core", "clouds", "cluster", "licence", "telemetry"]),
    ("admin", &["core", "actors", "telemetry"]),
    ("manifests", &["core", "api", "clouds", "cluster"]),
    ("sim", &["core", "api", "clouds", "cluster", "manifests"]),
    ("plan", &["core", "clouds", "cluster", "manifests", "sim"]),
    ("config", &["core", "api"]),
    (
        "command",
        &["core", "api", "clouds", "cluster", "actors", "admin", "manifests", "plan", "sim", "telemetry", "config"],
    ),
    ("main", &["core", "api", "config", "command"]),
];

/// Crates that a room must not use, whatever for.
const BANNED: [(&str, &[&str]); 4] = [
    (
        "core",
        &["tokio", "ractor", "kube", "k8s_openapi", "serde", "serde_json", "tracing", "fastrand", "axum", "futures"],
    ),
    ("api", &["tokio", "ractor", "futures", "axum", "fastrand"]),
    ("actors", &["kube", "k8s_openapi", "serde", "serde_json", "axum"]),
    ("cluster", &["ractor", "axum", "fastrand"]),
];

/// `telemetry` samples the meters of the actors' ground, while `actors` speak through `telemetry`: this one edge is let through.
const ACTORS_GROUND: &str = "runtime";

/// Clouds never name each other; what they share stands beside them.
const CLOUD_ROOMS: [&str; 3] = ["kwok", "outscale", "simulated"];

/// Longest file, tests left out.
const LONGEST_FILE: usize = 800;

struct File {
    path: PathBuf,
    /// Path below `src`, without the ending.
    name: Vec<String>,
    text: String,
    syntax: syn::File,
}

impl File {
    fn room(&self) -> &str {
        match self.name.first().map(String::as_str) {
            Some("lib" | "main") | None => "main",
            Some(room) => room,
        }
    }

    fn is_test(&self) -> bool {
        self.name.iter().any(|part| part == "tests" || part.ends_with("_tests"))
    }

    fn show(&self) -> String {
        self.path.display().to_string()
    }
}

fn sources() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = vec![];
    collect(&root, &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("sources can be read");
        let syntax = syn::parse_file(&text).expect("sources that compile can be parsed");
        let name = path.strip_prefix(&root).expect("found below the root").with_extension("");
        let name = name.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        File { path, name, text, syntax }
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("folders of sources can be read");
    for entry in entries.map(|entry| entry.expect("folders of sources can be read")) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// All paths that a file names, in `use` lines and elsewhere, each as its segments.
#[derive(Default)]
struct Paths(BTreeSet<Vec<String>>);

impl Paths {
    fn tree(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let mut path = prefix.to_vec();
        match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.tree(&path, &inner.tree);
            }
            syn::UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.0.insert(path);
            }
            syn::UseTree::Rename(name) => {
                path.push(name.ident.to_string());
                self.0.insert(path);
            }
            syn::UseTree::Glob(_) => {
                self.0.insert(path);
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(prefix, item)),
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }
}

fn named(file: &File) -> BTreeSet<Vec<String>> {
    let mut paths = Paths::default();
    paths.visit_file(&file.syntax);
    paths.0
}

/// Edges between rooms, with the first file that draws each.
fn edges(files: &[File]) -> BTreeMap<(String, String), String> {
    let mut edges = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test()) {
        for path in named(file) {
            let (Some("crate" | "joiner"), Some(to)) = (path.first().map(String::as_str), path.get(1)) else {
                continue;
            };
            let ground = to == "actors" && path.get(2).is_some_and(|part| part == ACTORS_GROUND);
            if file.room() != to && !(file.room() == "telemetry" && ground) {
                edges.entry((file.room().to_owned(), to.clone())).or_insert_with(|| file.show());
            }
        }
    }
    edges
}

#[test]
fn rooms_name_only_whom_they_may() {
    let files = sources();
    let mut wrong = vec![];
    for ((from, to), file) in edges(&files) {
        let allowed = WALLS.iter().find(|(room, _)| *room == from).map(|(_, allowed)| *allowed);
        match allowed {
            None => wrong.push(format!("{file}: room {from} is not in the table of walls")),
            Some(allowed) if allowed.contains(&to.as_str()) => {}
            Some(_) => wrong.push(format!("{file}: {from} may not name {to}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rooms_form_no_cycle() {
    let edges: BTreeSet<(String, String)> = edges(&sources()).into_keys().collect();
    let mut rooms: BTreeSet<&String> = edges.iter().flat_map(|(from, to)| [from, to]).collect();
    // Whoever names nobody that is left can go; what never can is a cycle.
    loop {
        let free: Vec<_> = rooms
            .iter()
            .filter(|room| !edges.iter().any(|(from, to)| from == **room && rooms.contains(to)))
            .copied()
            .collect();
        if free.is_empty() {
            break;
        }
        for room in free {
            assert!(rooms.remove(room), "{room} is met once");
        }
    }
    assert!(rooms.is_empty(), "these rooms name each other in a circle: {rooms:?}");
}

#[test]
fn rooms_use_only_the_crates_that_they_may() {
    let mut wrong = vec![];
    for file in sources().iter().filter(|file| !file.is_test()) {
        let Some((_, banned)) = BANNED.iter().find(|(room, _)| *room == file.room()) else { continue };
        for path in named(file) {
            if path.len() > 1 && banned.contains(&path[0].as_str()) {
                wrong.push(format!("{}: {}", file.show(), path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn clouds_do_not_name_each_other() {
    let mut wrong = vec![];
    for file in sources().iter().filter(|file| !file.is_test() && file.room() == "clouds") {
        let Some(own) = file.name.get(1).filter(|own| CLOUD_ROOMS.contains(&own.as_str())) else { continue };
        for path in named(file) {
            let other = path.get(2).is_some_and(|room| CLOUD_ROOMS.contains(&room.as_str()) && room != own);
            if path.first().is_some_and(|first| first == "crate")
                && path.get(1).is_some_and(|room| room == "clouds")
                && other
            {
                wrong.push(format!("{}: {}", file.show(), path.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Words that must not stand in `core`: it awaits nothing and asks no clock.
#[derive(Default)]
struct Impure(Vec<&'static str>);

impl<'ast> Visit<'ast> for Impure {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if signature.asyncness.is_some() {
            self.0.push("an async fn");
        }
        syn::visit::visit_signature(self, signature);
    }

    fn visit_expr_await(&mut self, _: &'ast syn::ExprAwait) {
        self.0.push("an await");
    }

    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {
        self.0.push("an async block");
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.last().is_some_and(|last| last.ident == "now") && path.segments.len() > 1 {
            self.0.push("a clock");
        }
        syn::visit::visit_path(self, path);
    }
}

#[test]
fn core_is_pure() {
    let mut wrong = vec![];
    for file in sources().iter().filter(|file| file.room() == "core" && !file.is_test()) {
        let mut impure = Impure::default();
        impure.visit_file(&file.syntax);
        wrong.extend(impure.0.iter().map(|what| format!("{}: {what}", file.show())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_stay_short_and_open_with_what_they_are_for() {
    let mut wrong = vec![];
    for file in sources() {
        if !file.text.starts_with("//! ") {
            wrong.push(format!("{}: does not open with a //! line", file.show()));
        }
        let lines = file.text.lines().count();
        if !file.is_test() && lines > LONGEST_FILE {
            wrong.push(format!("{}: {lines} lines, {LONGEST_FILE} are allowed", file.show()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_field_takes_the_place_of_what_a_log_line_says() {
    let field = regex::Regex::new(r#"tracing::\w+!\((?:[^"]*,)?\s*[%?]?message\s*[,=]"#).unwrap();
    let mut wrong = vec![];
    for file in sources() {
        if let Some(line) = field.find(&file.text) {
            wrong.push(format!(
                "{}: a field called `message` replaces the text of its line: {}",
                file.show(),
                line.as_str()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_door_plate_holds_no_furniture() {
    let mut wrong = vec![];
    for file in sources().iter().filter(|file| file.name.last().is_some_and(|name| name == "mod") && !file.is_test()) {
        for item in &file.syntax.items {
            if matches!(item, syn::Item::Fn(_) | syn::Item::Impl(_)) {
                wrong.push(format!("{}: a mod.rs holds no functions", file.show()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_room_is_on_the_map() {
    let map = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let rooms: BTreeSet<String> = sources().iter().map(|file| file.room().to_owned()).collect();
    let missing: Vec<_> = rooms
        .iter()
        .filter(|room| {
            *room != "main" && !map.contains(&format!("//! {room}/")) && !map.contains(&format!("//! {room}.rs"))
        })
        .collect();
    assert!(missing.is_empty(), "lib.rs does not mention {missing:?} in its code map");
}
