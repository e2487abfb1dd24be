//! Writes the declarations of vkgemm.h in Rust, and tells Cargo where the library is.
//!
//! pkg-config finds header and library: in `$VKGEMM_DIR`, the prefix of an installation, or where
//! PKG_CONFIG_PATH says. Files in `$OUT_DIR`: `sys.rs` has the declarations, `names.rs` their short
//! names, `abi.rs` the layouts that the tests compare with C's.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

macro_rules! add {
    ($to:expr, $($text:tt)*) => { writeln!($to, $($text)*).unwrap() };
}

fn main() {
    for variable in ["VKGEMM_DIR", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let include = pkg_config("--variable=includedir");
    for flag in pkg_config("--libs").split_whitespace() {
        match flag.split_at(flag.len().min(2)) {
            ("-L", folder) => println!("cargo:rustc-link-search=native={folder}"),
            ("-l", library) => println!("cargo:rustc-link-lib={library}"),
            _ if flag == "-pthread" => println!("cargo:rustc-link-lib=pthread"),
            _ => panic!("vkgemm.pc: Libs has {flag}, which is neither -L nor -l"),
        }
    }
    let header = Path::new(include.trim()).join("vkgemm/vkgemm.h");
    println!("cargo:rerun-if-changed={}", header.display());
    let text = fs::read_to_string(&header).unwrap_or_else(|e| panic!("{}: {e}", header.display()));
    let api = Api::read(&text);
    let out = env::var("OUT_DIR").unwrap();
    let files = [("sys.rs", api.declarations()), ("names.rs", api.names()), ("abi.rs", api.abi())];
    for (file, text) in files {
        fs::write(Path::new(&out).join(file), text).unwrap_or_else(|e| panic!("{out}/{file}: {e}"));
    }
}

fn pkg_config(argument: &str) -> String {
    let mut command = Command::new("pkg-config");
    if let Ok(prefix) = env::var("VKGEMM_DIR") {
        let multiarch = format!("lib/{}-linux-gnu", env::var("CARGO_CFG_TARGET_ARCH").unwrap());
        let folders = ["lib", "lib64", &multiarch].map(|lib| format!("{prefix}/{lib}/pkgconfig"));
        command.env("PKG_CONFIG_PATH", folders.join(":"));
    }
    let output = command.args([argument, "vkgemm"]).output();
    let output = output.unwrap_or_else(|e| panic!("pkg-config, which finds vkgemm: {e}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "set VKGEMM_DIR or PKG_CONFIG_PATH: {complaint}");
    String::from_utf8(output.stdout).expect("pkg-config prints UTF-8")
}

/// A field, an enumerator (whose type is its value) or a parameter, as C has it.
struct Member {
    doc: String,
    kind: String,
    name: String,
    count: Option<String>, // of an array
}

struct Item {
    doc: String,
    name: String,
    members: Vec<Member>,
}

/// The declarations of the header.
#[derive(Default)]
struct Api {
    constants: Vec<Item>,
    handles: Vec<Item>,
    enums: Vec<Item>,
    structs: Vec<Item>,
    callbacks: Vec<(String, Item)>, // with what they return
    functions: Vec<Item>,
}

impl Api {
    /// Reads what clang-format has written: declarations begin lines, and comments stand above
    /// them or at their ends.
    fn read(text: &str) -> Self {
        let mut api = Self::default();
        let mut doc = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(comment) = line.strip_prefix("//") {
                add_doc(&mut doc, comment);
                continue;
            }
            let item = |name: &str, members| Item { doc: doc.clone(), name: name.into(), members };
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["#define", name, "UINT64_MAX"] => api.constants.push(item(name, Vec::new())),
                ["typedef", "struct", name, _] if line.ends_with(';') => {
                    api.handles.push(item(name, Vec::new()));
                }
                ["typedef", kind @ ("enum" | "struct"), name, "{"] => {
                    let body = lines.by_ref().take_while(|line| !line.starts_with('}'));
                    let item = item(name, members(body, if kind == "enum" { ',' } else { ';' }));
                    if kind == "enum" { &mut api.enums } else { &mut api.structs }.push(item);
                }
                ["typedef" | "VKGEMM_API", ..] => {
                    let mut whole = line.to_string();
                    while !whole.ends_with(");") {
                        whole += lines.next().expect("a declaration ends");
                    }
                    let (head, parameters) = whole.trim_end_matches(");").rsplit_once('(').unwrap();
                    let name = member(String::new(), head.trim_end_matches(')')).name;
                    let parameters = parameters.split(',').map(|p| member(String::new(), p));
                    let item = item(&name, parameters.collect());
                    match words[0] {
                        "typedef" => {
                            let result = words[1].split('(').next().unwrap();
                            api.callbacks.push((result.into(), item));
                        }
                        _ => api.functions.push(item),
                    }
                }
                _ => {}
            }
            doc.clear();
        }
        assert!(api.structs.len() > 20 && api.functions.len() > 70, "vkgemm.h is written otherwise");
        api
    }

    fn declarations(&self) -> String {
        let mut out = String::new();
        for Item { doc, name, .. } in &self.constants {
            add!(out, "{doc}pub const {name}: u64 = u64::MAX;");
        }
        for Item { doc, name, .. } in &self.handles {
            add!(out, "{doc}#[repr(C)]\npub struct {name} {{ _opaque: [u8; 0], _thread: PhantomData<*mut u8> }}");
        }
        self.enums.iter().for_each(|item| self.enumeration(item, &mut out));
        let mut lifetimes = BTreeMap::new(); // of the structures before this one: "<'a>" or nothing
        for Item { doc, name, members } in &self.structs {
            let mut fields = String::new();
            for member in members {
                let kind = field_type(member, &lifetimes);
                add!(fields, "{}pub {}: {kind},", member.doc, ident(&member.name));
            }
            let lifetime = if fields.contains("'a") { "<'a>" } else { "" };
            lifetimes.insert(name.clone(), lifetime);
            // Structures with pointers are not compared. Functions of the system have no Debug in 1.63.
            let equal = if lifetime.is_empty() { ", PartialEq" } else { "" };
            let calls = |m: &Member| self.callbacks.iter().any(|(_, c)| c.name == m.kind);
            let debug = if members.iter().any(calls) { "" } else { ", Debug" };
            let sized = members[0].name == "struct_size";
            let set = if sized { "new.struct_size = StructSize::default();" } else { "" };
            let of = |f: &&Item| f.name.ends_with("_init") && f.members[0].kind == format!("{name}*");
            let init = self.functions.iter().find(of).map_or(String::new(), |f| {
                format!(
                    "let status = unsafe {{ {}(&mut new, mem::size_of::<Self>()) }};
                         assert_eq!(status, VkgemmStatus::SUCCESS);",
                    f.name
                )
            });
            add!(
                out,
                "{doc}#[repr(C)]\n#[derive(Clone, Copy{debug}{equal})]
                pub struct {name}{lifetime} {{\n{fields}}}
                impl{lifetime} Default for {name}{lifetime} {{ fn default() -> Self {{
                    #[allow(unused_mut)] let mut new: Self = unsafe {{ mem::zeroed() }};
                    {set}\n{init}\nnew
                }} }}"
            );
        }
        for (result, Item { doc, name, members }) in &self.callbacks {
            let parameters = parameters(members);
            let result = if result == "void" { String::new() } else { format!(" -> {}", rust_type(result)) };
            add!(out, "{doc}pub type {name} = Option<unsafe extern \"system\" fn({parameters}){result}>;");
        }
        out += "extern \"C\" {\n";
        for Item { doc, name, members } in &self.functions {
            add!(out, "{doc}pub fn {name}({}) -> VkgemmStatus;", parameters(members));
        }
        out + "}\n"
    }

    /// An integer with constants: C may hand over values that this header has no name for.
    fn enumeration(&self, Item { doc, name, members }: &Item, out: &mut String) {
        let prefix = members.last().unwrap().name.strip_suffix("MAX_ENUM").expect("*_MAX_ENUM");
        add!(
            out,
            "{doc}#[repr(transparent)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct {name}(pub i32);\nimpl {name} {{"
        );
        for member in &members[..members.len() - 1] {
            let short = member.name.strip_prefix(prefix).unwrap_or(&member.name["VKGEMM_".len()..]);
            let Member { doc, kind: value, name: full, .. } = member;
            add!(out, "{doc}#[doc(alias = \"{full}\")]\npub const {short}: Self = Self({value});");
        }
        out.push_str("}\n");
        let key = format!("VKGEMM_ENUMERATION_{}", &prefix["VKGEMM_".len()..].trim_end_matches('_'));
        if self.enums.iter().flat_map(|e| &e.members).any(|m| m.name == key) {
            let of = &key["VKGEMM_ENUMERATION_".len()..];
            add!(out, "named!({name}, {of});");
        }
    }

    /// Names without the prefix, for all but handles.
    fn names(&self) -> String {
        let mut out = String::new();
        for Item { name, .. } in self.enums.iter().chain(&self.structs) {
            add!(out, "pub use sys::{name} as {};", &name["Vkgemm".len()..]);
        }
        out
    }

    /// A function that prints layouts and enumerators as tests/c/abi.txt has them, and one that
    /// links every function.
    fn abi(&self) -> String {
        let mut out = String::from("fn abi() -> String { let mut out = String::new();\n");
        for Item { name, members, .. } in &self.structs {
            add!(out, "structure!(out, {name});");
            for Member { kind, name: field, count, .. } in members {
                let array = count.as_ref().map_or(String::new(), |count| format!("[{count}]"));
                let (c, field) = (format!("{kind} {field}{array}"), ident(field));
                add!(out, "field!(out, {name}, {field}, {c:?});");
            }
        }
        for Item { name, members, .. } in &self.enums {
            add!(out, "enumeration!(out, {name});");
            let prefix = members.last().unwrap().name.strip_suffix("MAX_ENUM").unwrap();
            for Member { name: full, .. } in &members[..members.len() - 1] {
                let short = full.strip_prefix(prefix).unwrap_or(&full["VKGEMM_".len()..]);
                add!(out, "enumerator!(out, {name}::{short}, {full:?});");
            }
        }
        out += "out }\nfn functions() -> Vec<*const ()> { vec![\n";
        for Item { name, .. } in &self.functions {
            add!(out, "{name} as *const (),");
        }
        out + "] }\n"
    }
}

/// Adds a line of a comment, without what has a meaning in Markdown.
fn add_doc(doc: &mut String, comment: &str) {
    let comment = comment.replace('[', "\\[").replace('<', "\\<").replace('*', "\\*");
    add!(doc, "///{}", comment.trim_end());
}

/// The lines of an enumeration or a structure, which `end` ends.
fn members<'t>(lines: impl Iterator<Item = &'t str>, end: char) -> Vec<Member> {
    let mut members = Vec::new();
    let mut doc = String::new();
    for line in lines {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        if !comment.is_empty() {
            add_doc(&mut doc, comment);
        }
        let code = code.trim().trim_end_matches(end);
        if let Some((name, value)) = code.split_once(" = ") {
            let (name, kind) = (name.into(), value.into());
            members.push(Member { doc: doc.clone(), kind, name, count: None });
        } else if !code.is_empty() {
            members.push(member(doc.clone(), code));
        }
        if comment.is_empty() || !code.is_empty() {
            doc.clear();
        }
    }
    members
}

/// "const char* const* names", "uint32_t count\[3\]".
fn member(doc: String, code: &str) -> Member {
    let (code, count) = match code.trim().trim_end_matches(']').split_once('[') {
        Some((code, count)) => (code, Some(count.to_string())),
        None => (code.trim(), None),
    };
    let begin = code.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let words: Vec<&str> = code[..begin].split_whitespace().collect();
    Member { doc, kind: words.join(" "), name: code[begin..].into(), count }
}

/// The type of a field. A pointer to one structure may be null: an Option<&T>.
fn field_type(member: &Member, lifetimes: &BTreeMap<String, &str>) -> String {
    let kind = &member.kind;
    let one = kind.strip_prefix("const ").and_then(|kind| kind.strip_suffix('*'));
    match (one, &member.count) {
        _ if member.name == "struct_size" => "StructSize<Self>".into(),
        (Some("char"), _) => "Text<'a>".into(),
        (Some(one), _) if lifetimes.contains_key(one) => {
            format!("Option<&'a {one}{}>", lifetimes[one])
        }
        (_, Some(count)) => format!("[{}; {count}]", rust_type(kind)),
        _ => rust_type(kind),
    }
}

/// C's name, or one with an underscore for a keyword of Rust.
fn ident(name: &str) -> String {
    if ["type", "loop"].contains(&name) {
        format!("{name}_")
    } else {
        name.into()
    }
}

fn parameters(members: &[Member]) -> String {
    let one = |m: &Member| format!("{}: {}", ident(&m.name), rust_type(&m.kind));
    members.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn rust_type(c: &str) -> String {
    let mut rust = String::new();
    let mut constant = false;
    for word in c.replace('*', " * ").split_whitespace() {
        match word {
            "const" => constant = true,
            "*" => {
                rust = format!("*{} {rust}", if constant { "const" } else { "mut" });
                constant = false;
            }
            "uint8_t" => rust = "u8".into(),
            "uint32_t" => rust = "u32".into(),
            "int32_t" => rust = "i32".into(),
            "uint64_t" => rust = "u64".into(),
            "size_t" => rust = "usize".into(),
            "float" => rust = "f32".into(),
            "double" => rust = "f64".into(),
            "char" => rust = "c_char".into(),
            "void" => rust = "c_void".into(),
            name => rust = name.into(),
        }
    }
    rust
}
