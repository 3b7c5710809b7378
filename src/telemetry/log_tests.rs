//! What lines look like.

use super::*;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn logged(level: Level, format: Format, act: impl FnOnce()) -> Vec<String> {
    let sink = Sink::default();
    let now: Now = Arc::new(|| "2026-11-21T15:18:57.1239Z".parse().unwrap());
    let subscriber = subscriber(level, format, vec![Box::new(sink.clone())], now);
    tracing::subscriber::with_default(subscriber, act);
    let bytes = sink.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

const JSON: Format = Format::Json { commit: Some("abc1234") };

#[derive(Debug, thiserror::Error)]
#[error("cannot launch")]
struct Outer(#[source] std::io::Error);

#[test]
fn json_lines_have_karpenters_keys() {
    let lines = logged(Level::Info, JSON, || {
        let _span = tracing::info_span!("life", nodeclaim = "default-x").entered();
        tracing::info!(pods = 3_u64, price = 0.5, ready = true, state = %Status, "created nodeclaim");
        tracing::debug!("not at this level");
    });
    assert_eq!(
        lines,
        [concat!(
            r#"{"level":"INFO","time":"2026-11-21T15:18:57.123Z","logger":"controller","message":"created nodeclaim","#,
            r#""commit":"abc1234","nodeclaim":"default-x","pods":3,"price":0.5,"ready":true,"state":"a \"quoted\" word"}"#
        )]
    );
    let parsed: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(parsed["state"], "a \"quoted\" word");
}

struct Status;

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a \"quoted\" word")
    }
}

#[test]
fn callers_are_named_at_debug_only() {
    let lines = logged(Level::Debug, JSON, || tracing::debug!("here"));
    assert!(lines[0].contains(r#""caller":"telemetry/log_tests.rs:"#), "{}", lines[0]);
    // Its failures come back as values, and are said by whoever asked.
    assert_eq!(logged(Level::Info, JSON, || tracing::error!(target: "kube_client", "noise")), Vec::<String>::new());
    assert_eq!(logged(Level::Debug, JSON, || tracing::error!(target: "kube_client", "noise")).len(), 1);
    assert_eq!(logged(Level::Debug, JSON, || tracing::debug!(target: "hyper", "noise")), Vec::<String>::new());
    assert_eq!(logged(Level::Error, JSON, || tracing::warn!("odd")), Vec::<String>::new());
}

#[test]
fn errors_come_once_with_their_causes() {
    let error = Outer(std::io::Error::other("no route to host"));
    assert_eq!(chain(&error), "cannot launch: no route to host");
    let told = std::io::Error::other("cannot launch: no route to host");
    assert_eq!(chain(&told), "cannot launch: no route to host");
    let lines = logged(Level::Info, JSON, || {
        tracing::error!(error = &error as &(dyn std::error::Error + 'static), "giving up");
    });
    assert!(lines[0].contains(r#""error":"cannot launch: no route to host""#), "{}", lines[0]);
}

#[test]
fn fields_do_not_shadow_the_keys_of_every_line() {
    let lines = logged(Level::Info, JSON, || tracing::info!(level = "high", "water"));
    assert!(lines[0].contains(r#""level":"INFO""#) && lines[0].contains(r#""level_":"high""#), "{}", lines[0]);
}

#[test]
fn people_get_short_lines() {
    let lines = logged(Level::Info, Format::Human { colour: false }, || {
        tracing::warn!(pool = "default", why = "two words", "cannot use nodepool");
    });
    assert_eq!(lines, [r#"15:18:57.123 WARN  cannot use nodepool pool=default why="two words""#]);
    let lines = logged(Level::Info, Format::Human { colour: true }, || tracing::error!("red"));
    assert!(lines[0].contains("\u{1b}[1;31mERROR\u{1b}[0m"), "{}", lines[0]);
}

#[test]
fn floods_are_thinned() {
    let lines = logged(Level::Info, JSON, || {
        for _ in 0..350 {
            tracing::info!("again");
        }
        tracing::info!("something else");
    });
    assert_eq!(lines.len(), 100 + 2 + 1);
}

#[test]
fn an_output_that_cannot_be_opened_is_refused_clearly() {
    let refused = Output::File("/nonexistent/joiner.log".into()).open().err().unwrap().to_string();
    assert!(refused.starts_with("cannot open log output /nonexistent/joiner.log: "), "{refused}");
    assert!(refused.ends_with("; change LOG_OUTPUT_PATHS / --log-output-paths"), "{refused}");
}
