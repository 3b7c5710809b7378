//! Files, directories and standard input, as objects: in an order of their own, so that the order of the files does not matter.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::admission::Admission;
use super::documents::documents;
use super::object::{Found, Object};
use super::read::{examine, foreign};
use crate::cluster::convert::ShapeStore;

/// Endings of the files that are read in directories, as `kubectl` has them.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// What standard input is called in messages.
const STDIN: &str = "standard input";

/// Where manifests come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A file, or a directory with all that is below it.
    Path(PathBuf),
    /// Standard input (`-`).
    Stdin,
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::Path(path) }
    }
}

/// An object and where it stands.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The file.
    pub file: Arc<str>,
    /// The file's document, from 1.
    pub document: usize,
    /// The object.
    pub found: Found,
}

/// Something that is wrong in a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Trouble {
    /// The file.
    pub file: Arc<str>,
    /// The file's document, from 1; nothing when the file as a whole is meant.
    pub document: Option<usize>,
    /// Object (where it is known), field, what is wrong, and the remedy.
    pub problem: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.document {
            Some(number) => write!(f, "{}: document {number}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

/// An object that could not be read at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unread {
    /// Kind.
    pub kind: String,
    /// Namespace; empty of a kind that has none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Object, field, what is wrong, and the remedy.
    pub problem: String,
}

/// All that was found.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Objects by kind, namespace and name.
    pub objects: Vec<Placed>,
    /// What is wrong, by file and document.
    pub troubles: Vec<Trouble>,
    /// Objects that could not be read. What is wrong with them is among the troubles.
    pub unread: Vec<Unread>,
    /// Files and directories in which there is nothing.
    pub empty: Vec<Trouble>,
}

impl Gathered {
    /// Adds objects that stand in no file.
    pub fn add(&mut self, objects: Vec<Object>) {
        self.objects.extend(objects.into_iter().map(|object| Placed {
            file: "".into(),
            document: 0,
            found: Found::bare(object),
        }));
    }
}

/// A manifest that is not read yet.
struct Sheet {
    file: Arc<str>,
    document: usize,
    value: Value,
}

/// Kind, namespace and name.
type Identity = (String, String, String);
/// Manifests by what they describe; of objects that have a name there should be one.
type Sheets = BTreeMap<Identity, Vec<Sheet>>;

/// Reads all sources. What cannot be read is noted, and everything else is there.
pub fn gather(sources: &[Source], stdin: &mut dyn FnMut() -> io::Result<String>, shapes: &ShapeStore) -> Gathered {
    let mut gathered = Gathered::default();
    let mut sheets = Sheets::new();
    for source in sources {
        match source {
            Source::Stdin => read_text(STDIN, stdin(), &mut sheets, &mut gathered),
            Source::Path(path) => drop(read_path(path, true, &mut sheets, &mut gathered)),
        }
    }
    for ((kind, _, name), all) in &mut sheets {
        settle(kind, name, all, &mut gathered.troubles);
    }
    // What is written into pods counts for all of them, wherever it stands.
    let mut admission = Admission::default();
    sheets.values().filter_map(|all| all.first()).for_each(|sheet| admission.hear(&sheet.value));
    for (identity, all) in sheets {
        for sheet in all {
            read_sheet(&identity, sheet, (shapes, &admission), &mut gathered);
        }
    }
    gathered.troubles.sort();
    gathered.troubles.dedup();
    gathered.empty.sort();
    gathered.empty.dedup();
    gathered
}

/// Reads a manifest.
fn read_sheet(identity: &Identity, sheet: Sheet, by: (&ShapeStore, &Admission), gathered: &mut Gathered) {
    let Sheet { file, document, value } = sheet;
    for found in examine(&value, by.0, by.1) {
        let mut trouble = |problem: String| {
            gathered.troubles.push(Trouble { file: Arc::clone(&file), document: Some(document), problem });
        };
        match found {
            Err(invalid) => {
                let problem = invalid.to_string();
                trouble(problem.clone());
                let (kind, namespace, name) = identity.clone();
                gathered.unread.push(Unread { kind, namespace, name, problem });
            }
            Ok(found) => {
                found.problems.iter().for_each(|problem| trouble(problem.to_string()));
                gathered.objects.push(Placed { file: Arc::clone(&file), document, found });
            }
        }
    }
}

/// Reads a file, or all of a directory, and says whether there was any file to read.
fn read_path(path: &Path, named: bool, sheets: &mut Sheets, gathered: &mut Gathered) -> bool {
    let name = path.display().to_string();
    if !path.is_dir() {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let is_meant = named || ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known));
        if is_meant {
            let text = std::fs::read(path).and_then(|bytes| decoded(&name, bytes, &mut gathered.troubles));
            read_text(&name, text, sheets, gathered);
        }
        return is_meant;
    }
    let entries = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>());
    let mut paths = match entries {
        Ok(paths) => paths,
        Err(error) => {
            gathered.troubles.push(unreadable(&name, &error));
            return true;
        }
    };
    paths.sort();
    let mut is_any = false;
    for path in paths {
        is_any |= read_path(&path, false, sheets, gathered);
    }
    if named && !is_any {
        let problem = format!("there is no file in it that ends in .{}; name another directory", ENDINGS.join(" or ."));
        gathered.empty.push(Trouble { file: name.into(), document: None, problem });
    }
    is_any
}

/// The text of a file. Bytes that are no UTF-8 spoil the values in which they stand, and not the file.
fn decoded(name: &str, bytes: Vec<u8>, troubles: &mut Vec<Trouble>) -> io::Result<String> {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let (bytes, good) = (error.as_bytes(), error.utf8_error().valid_up_to());
    if bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"));
    }
    let line = bytes[..good].split(|byte| *byte == b'\n').count();
    let problem = format!("line {line} is not UTF-8, and is read with \u{fffd} in its place; save the file as UTF-8");
    troubles.push(Trouble { file: name.into(), document: None, problem });
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn unreadable(name: &str, error: &io::Error) -> Trouble {
    let problem = format!("cannot be read ({error}); name a readable file or directory, or - for standard input");
    Trouble { file: name.into(), document: None, problem }
}

fn read_text(name: &str, text: io::Result<String>, sheets: &mut Sheets, gathered: &mut Gathered) {
    let file: Arc<str> = name.into();
    let text = match text {
        Ok(text) => text,
        Err(error) => return gathered.troubles.push(unreadable(name, &error)),
    };
    let documents = documents(&text);
    if documents.is_empty() {
        let problem = "there is nothing in it; write a manifest, or leave it out".to_owned();
        gathered.empty.push(Trouble { file: Arc::clone(&file), document: None, problem });
    }
    for document in documents {
        let number = document.number;
        match document.content {
            Ok(value) => put(Sheet { file: Arc::clone(&file), document: number, value }, sheets),
            Err(problem) => {
                let problem = format!("is not YAML: {problem}; correct it");
                gathered.troubles.push(Trouble { file: Arc::clone(&file), document: Some(number), problem });
            }
        }
    }
}

/// Keeps a manifest; lists are taken apart.
fn put(mut sheet: Sheet, sheets: &mut Sheets) {
    let kind = sheet.value["kind"].as_str().unwrap_or_default().to_owned();
    if (kind == "List" || kind.ends_with("List")) && sheet.value["items"].is_array() {
        // `kubectl get --raw` leaves kinds out inside of typed lists.
        let (version, inner) = (sheet.value["apiVersion"].clone(), kind.strip_suffix("List").unwrap_or_default());
        let items = sheet.value["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        for mut value in items {
            if !inner.is_empty() && value.is_object() && value["kind"].is_null() {
                value["kind"] = inner.into();
                value["apiVersion"] = version.clone();
            }
            put(Sheet { file: Arc::clone(&sheet.file), document: sheet.document, value }, sheets);
        }
        return;
    }
    let metadata = &sheet.value["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default().to_owned();
    let namespace = if is_namespaced(&kind) { metadata["namespace"].as_str().unwrap_or("default") } else { "" };
    let namespace = namespace.to_owned();
    // One of another API is another object, whatever it is called.
    let kind = foreign(&sheet.value).unwrap_or(kind);
    sheets.entry((kind, namespace, name)).or_default().push(sheet);
}

/// Of several manifests of one object one is kept, the same whatever their order; those that differ from it are said. Without a name each is an
/// object of its own.
fn settle(kind: &str, name: &str, all: &mut Vec<Sheet>, troubles: &mut Vec<Trouble>) {
    if all.len() < 2 {
        return;
    }
    all.sort_by_cached_key(|sheet| (sheet.value.to_string(), Arc::clone(&sheet.file), sheet.document));
    if name.is_empty() {
        return;
    }
    let rest = all.split_off(1);
    let kept = &all[0];
    for sheet in rest.into_iter().filter(|sheet| sheet.value != kept.value) {
        let problem = format!(
            "{kind} {name}: differs from the one in {} (document {}), which counts; leave one of them out",
            kept.file, kept.document
        );
        troubles.push(Trouble { file: sheet.file, document: Some(sheet.document), problem });
    }
}

fn is_namespaced(kind: &str) -> bool {
    let of_storage = ["PersistentVolume", "StorageClass", "CSINode", "VolumeAttachment"];
    let without =
        ["Node", "NodePool", "NodeClaim", "NodeOverlay", "Namespace", "PriorityClass", "RuntimeClass", "ResourceSlice"];
    !without.contains(&kind) && !of_storage.contains(&kind) && !kind.ends_with("NodeClass")
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
