//! Runs stories side by side in one lab, and says how long each took.

use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use futures::StreamExt;
use futures::stream;
use hpc_e2e::{Lab, LabError, Options, Story};
use tokio::task::LocalSet;

/// How a story ends: an error or a panic is a failure.
pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// A story under way.
pub type Running = Pin<Box<dyn Future<Output = Outcome>>>;

/// A story, ready to be told.
#[derive(Clone)]
pub struct Case {
    /// `module::function`.
    pub name: String,
    /// The story.
    pub tell: Rc<dyn Fn(Arc<Story>) -> Running>,
}

/// The stories of a module, in its order.
#[macro_export]
macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        /// The stories of this module.
        pub fn stories() -> Vec<$crate::runner::Case> {
            vec![$($crate::runner::Case {
                name: concat!(module_path!(), "::", stringify!($name)).to_owned(),
                tell: std::rc::Rc::new(|story| Box::pin($name(story))),
            }),+]
        }
    };
}

/// Which stories to tell, and how.
#[derive(Debug, Parser)]
struct Args {
    /// Only stories whose name contains this.
    filter: Option<String>,
    /// Print the names and stop.
    #[arg(long)]
    list: bool,
    /// Tell each story so many times.
    #[arg(long, default_value_t = 1)]
    times: usize,
    /// How many stories run side by side.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Seed of the simulator.
    #[arg(long, env = "HPCOPS_SEED", default_value_t = 1)]
    seed: u64,
    /// Factor on simulated delays.
    #[arg(long, default_value_t = 0.02)]
    time_scale: f64,
    /// Longest time one story may take, in seconds.
    #[arg(long, default_value_t = 600)]
    deadline: u64,
    /// Append one line `seconds<TAB>ok|FAILED<TAB>name` per story to this file.
    #[arg(long, env = "HPCOPS_RESULTS")]
    results: Option<PathBuf>,
    /// Write every request that the simulator got to this file, for the oracle.
    #[arg(long, env = "HPCOPS_REQUESTS")]
    requests: Option<PathBuf>,
}

/// One story told.
struct Told {
    name: String,
    seconds: f64,
    failure: Option<String>,
}

/// Tells the stories that the command line asks for.
pub fn main(cases: &[Case]) -> ExitCode {
    if std::env::var_os("HPCOPS_STORIES").is_none() {
        say("stories need the lab; `make test` and `make repeat STORY=name` tell them");
        return ExitCode::SUCCESS;
    }
    let args = Args::parse();
    let wanted: Vec<Case> = cases.iter().filter(|case| args.wants(case)).cloned().collect();
    if args.list {
        for case in &wanted {
            say(&short(&case.name));
        }
        return ExitCode::SUCCESS;
    }
    std::panic::set_hook(Box::new(note_panic));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let told = match runtime {
        // Stories share this thread, so they need not be `Send`; the lab's own tasks have others.
        Ok(runtime) => LocalSet::new().block_on(&runtime, tell_all(&args, &wanted)),
        Err(error) => Err(LabError::io("start", "the runtime")(error)),
    };
    match told {
        Ok(told) => summary(&args, &told),
        Err(error) => {
            say(&format!("the lab did not start: {}", error.chain()));
            ExitCode::FAILURE
        }
    }
}

impl Args {
    fn wants(&self, case: &Case) -> bool {
        self.filter.as_ref().is_none_or(|filter| short(&case.name).contains(filter.as_str()))
    }

    fn options(&self) -> Options {
        Options { seed: self.seed, time_scale: self.time_scale, bodies: is_root() }
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

async fn tell_all(args: &Args, cases: &[Case]) -> hpc_e2e::Result<Vec<Told>> {
    let begun = Instant::now();
    let lab = Arc::new(Lab::start(args.options()).await?);
    say(&format!("lab up in {:.1} s, seed {}", begun.elapsed().as_secs_f64(), args.seed));
    let deadline = Duration::from_secs(args.deadline);
    let queue = (0..args.times).flat_map(|_| cases.iter().cloned());
    let told = stream::iter(queue)
        .map(|case| tell(Arc::clone(&lab), case, deadline))
        .buffer_unordered(args.jobs.max(1))
        .inspect(print_told)
        .collect()
        .await;
    write_requests(args, &lab)?;
    match Arc::into_inner(lab) {
        Some(lab) => lab.stop().await?,
        None => say("a story left something running; it ends with this process"),
    }
    Ok(told)
}

fn write_requests(args: &Args, lab: &Lab) -> hpc_e2e::Result<()> {
    let Some(path) = &args.requests else { return Ok(()) };
    let text = serde_json::Value::Array(lab.requests()).to_string();
    std::fs::write(path, text).map_err(LabError::io("write", path))
}

async fn tell(lab: Arc<Lab>, case: Case, deadline: Duration) -> Told {
    let (name, begun) = (case.name.clone(), Instant::now());
    let failure = match lab.story(&short(&name)).await {
        Ok(story) => tell_in(Arc::new(story), case, deadline).await,
        Err(error) => Some(error.chain()),
    };
    Told { name, seconds: begun.elapsed().as_secs_f64(), failure }
}

async fn tell_in(story: Arc<Story>, case: Case, deadline: Duration) -> Option<String> {
    // A task of its own, so that a panic is this story's failure and nobody else's.
    let mut task = tokio::task::spawn_local((case.tell)(Arc::clone(&story)));
    let failure = match tokio::time::timeout(deadline, &mut task).await {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(error))) => Some(chain(&*error)),
        Ok(Err(_panic)) => Some(PANICKED.take()),
        Err(_elapsed) => {
            task.abort();
            Some(format!("not over within {deadline:?}"))
        }
    };
    let failure = match failure {
        Some(failure) => Some(with_evidence(&story, failure).await),
        None => None,
    };
    let ended = story.end().await.err().map(|error| error.chain());
    failure.or(ended)
}

async fn with_evidence(story: &Story, failure: String) -> String {
    match story.save_evidence().await {
        Ok(dir) => format!("{failure}\n    evidence: {}", dir.display()),
        Err(error) => format!("{failure}\n    evidence could not be saved: {}", error.chain()),
    }
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        line = format!("{line}: {next}");
        cause = next.source();
    }
    line
}

thread_local! {
    /// Where and why the last story on this thread panicked.
    static PANICKED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A failed assertion is an ordinary end of a story: its place and words, no backtrace.
fn note_panic(info: &PanicHookInfo<'_>) {
    PANICKED.set(info.to_string());
}

fn print_told(told: &Told) {
    let mark = if told.failure.is_some() { "FAILED" } else { "ok    " };
    say(&format!("{mark} {:6.1} s  {}", told.seconds, short(&told.name)));
    if let Some(failure) = &told.failure {
        say(&format!("    {failure}"));
    }
}

fn summary(args: &Args, told: &[Told]) -> ExitCode {
    let mut slowest: Vec<&Told> = told.iter().collect();
    slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    say("slowest stories:");
    for told in slowest.iter().take(10) {
        say(&format!("  {:6.1} s  {}", told.seconds, short(&told.name)));
    }
    write_results(args, told);
    let failed = told.iter().filter(|told| told.failure.is_some()).count();
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    // The words of cargo's own test runner, so that one reader counts both.
    say(&format!("test result: {verdict}. {} passed; {failed} failed", told.len() - failed));
    if failed == 0 && !told.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write_results(args: &Args, told: &[Told]) {
    let Some(path) = &args.results else { return };
    let line = |told: &Told| {
        let mark = if told.failure.is_some() { "FAILED" } else { "ok" };
        format!("{:.1}\t{mark}\t{}\n", told.seconds, short(&told.name))
    };
    let text: String = told.iter().map(line).collect();
    let file = std::fs::File::options().create(true).append(true).open(path);
    let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    if let Err(error) = written {
        say(&format!("cannot write {}: {error}", path.display()));
    }
}

/// A story's name without the name of this binary.
fn short(name: &str) -> String {
    name.split_once("::").map_or(name, |(_, rest)| rest).to_owned()
}

#[expect(clippy::print_stdout, reason = "a test runner speaks to its terminal")]
pub fn say(line: &str) {
    println!("{line}");
}
