//! zarrs as a peer of the tests and benchmarks: reads requests from standard input, a JSON object a line, and answers each
//! with one. Elements travel through files: in C order, in this machine's byte order; text of any length as UTF-8 bytes,
//! with the offsets of the elements in the message.
//!
//!   {"do": "create", "path", "metadata"}
//!   {"do": "write", "path", "start", "shape", "data": FILE, "offsets"?}
//!   {"do": "read", "path", "start", "shape", "data"?: FILE}    → {"offsets"?}; without FILE for a benchmark
//!   {"do": "boxes", "path", "starts", "shape"}                 boxes one by one, for a benchmark
//!   {"do": "copy", "from", "path", "metadata"?}                see `copy`
//!   {"do": "version"}                                          → {"version"}
//!
//! What fails gives {"error": TEXT}. "threads" limits the work of one request; the array that was used last stays open.
use std::error::Error;
use std::io::{BufRead, Write};
use std::sync::Arc;

use serde_json::{json, Value};
use zarrs::array::{Array, ArrayBytes, ArrayBytesOffsets, ArrayMetadata, ArraySubset};
use zarrs::filesystem::FilesystemStore;

type Answer = Result<Value, Box<dyn Error>>;
type Opened = Array<FilesystemStore>;

fn numbers(value: &Value) -> Result<Vec<u64>, Box<dyn Error>> {
    let list = value.as_array().ok_or("a list of numbers is missing")?;
    list.iter().map(|n| n.as_u64().ok_or_else(|| "not a number".into())).collect()
}

fn text<'a>(request: &'a Value, name: &str) -> Result<&'a str, Box<dyn Error>> {
    request[name].as_str().ok_or_else(|| format!("{name} is missing").into())
}

struct Peer {
    open: Option<(String, Arc<Opened>)>,
    /// The elements that `copy` writes, read once.
    elements: Option<(String, Arc<ArrayBytes<'static>>)>,
}

impl Peer {
    fn array(&mut self, path: &str) -> Result<Arc<Opened>, Box<dyn Error>> {
        if let Some((known, array)) = &self.open {
            if known == path {
                return Ok(array.clone());
            }
        }
        let array = Arc::new(Array::open(Arc::new(FilesystemStore::new(path)?), "/")?);
        self.open = Some((path.to_owned(), array.clone()));
        Ok(array)
    }

    fn create(&mut self, path: &str, metadata: &Value) -> Result<Arc<Opened>, Box<dyn Error>> {
        let metadata = ArrayMetadata::try_from(metadata.to_string().as_str())?;
        std::fs::create_dir_all(path)?;
        let array = Array::new_with_metadata(Arc::new(FilesystemStore::new(path)?), "/", metadata)?;
        array.store_metadata()?;
        let array = Arc::new(array);
        self.open = Some((path.to_owned(), array.clone()));
        Ok(array)
    }

    fn read(&mut self, request: &Value) -> Answer {
        let array = self.array(text(request, "path")?)?;
        let subset = ArraySubset::new_with_start_shape(numbers(&request["start"])?, numbers(&request["shape"])?)?;
        let bytes: ArrayBytes<'static> = array.retrieve_array_subset(&subset)?;
        let Some(file) = request["data"].as_str() else {
            return Ok(json!({ "bytes": bytes.size() }));
        };
        match bytes {
            ArrayBytes::Fixed(bytes) => {
                std::fs::write(file, bytes)?;
                Ok(json!({}))
            }
            variable => {
                let offsets = variable.offsets().ok_or("optional elements")?.to_vec();
                let (bytes, _) = variable.into_variable()?.into_parts();
                std::fs::write(file, bytes)?;
                Ok(json!({ "offsets": offsets }))
            }
        }
    }

    fn boxes(&mut self, request: &Value) -> Answer {
        let array = self.array(text(request, "path")?)?;
        let shape = numbers(&request["shape"])?;
        for start in request["starts"].as_array().ok_or("starts is missing")? {
            let subset = ArraySubset::new_with_start_shape(numbers(start)?, shape.clone())?;
            let _: ArrayBytes<'static> = array.retrieve_array_subset(&subset)?;
        }
        Ok(json!({}))
    }

    fn write(&mut self, request: &Value) -> Answer {
        let array = self.array(text(request, "path")?)?;
        let subset = ArraySubset::new_with_start_shape(numbers(&request["start"])?, numbers(&request["shape"])?)?;
        let bytes = std::fs::read(text(request, "data")?)?;
        let elements = if request["offsets"].is_array() {
            let offsets: Vec<usize> = numbers(&request["offsets"])?.into_iter().map(|n| n as usize).collect();
            ArrayBytes::new_vlen(bytes, ArrayBytesOffsets::try_from(offsets)?)?
        } else {
            ArrayBytes::new_flen(bytes)
        };
        array.store_array_subset(&subset, elements)?;
        Ok(json!({}))
    }

    /// For a benchmark: with "metadata" only reads the elements of `from` into memory and creates `path`; without, writes
    /// them to it.
    fn copy(&mut self, request: &Value) -> Answer {
        let (from, path) = (text(request, "from")?, text(request, "path")?);
        if !self.elements.as_ref().is_some_and(|(known, _)| known == from) {
            let array = self.array(from)?;
            let bytes: ArrayBytes<'static> = array.retrieve_array_subset(&array.subset_all())?;
            self.elements = Some((from.to_owned(), Arc::new(bytes)));
        }
        if request["metadata"].is_object() {
            self.create(path, &request["metadata"])?;
            return Ok(json!({}));
        }
        let array = self.array(path)?;
        let elements = self.elements.as_ref().ok_or("no elements")?.1.clone();
        let ArrayBytes::Fixed(bytes) = elements.as_ref() else {
            return Err("text".into());
        };
        array.store_array_subset(&array.subset_all(), ArrayBytes::new_flen(bytes.as_ref()))?;
        Ok(json!({}))
    }

    fn answer(&mut self, line: &str) -> Answer {
        let request: Value = serde_json::from_str(line)?;
        if let Some(threads) = request["threads"].as_u64() {
            zarrs::config::global_config_mut().set_codec_concurrent_target(threads as usize);
        }
        match text(&request, "do")? {
            "create" => self.create(text(&request, "path")?, &request["metadata"]).map(|_| json!({})),
            "write" => self.write(&request),
            "read" => self.read(&request),
            "boxes" => self.boxes(&request),
            "copy" => self.copy(&request),
            "version" => Ok(json!({ "version": zarrs::version::version_str() })),
            other => Err(format!("what is {other}?").into()),
        }
    }
}

fn main() {
    let mut peer = Peer { open: None, elements: None };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        // A chunk that it takes for damaged can make it panic.
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| peer.answer(&line)))
            .unwrap_or_else(|_| Err("panic".into()))
            .unwrap_or_else(|error| json!({ "error": error.to_string() }));
        println!("{answer}");
        let _ = std::io::stdout().flush();
    }
}
