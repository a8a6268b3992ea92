//! Every reason a condition can have, with its sentence for the documentation.

use strum::{Display, EnumIter, EnumMessage, EnumString, IntoEnumIterator, IntoStaticStr};

/// Why a condition is as it is. At most 24 characters, the width of the STATUS column.
///
/// The comment on each is its description, the `message` beside it what the user can do; both go to
/// the documentation.
#[derive(
    Clone,
    Copy,
    Debug,
    Display,
    EnumIter,
    EnumMessage,
    EnumString,
    IntoStaticStr,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
)]
pub enum Reason {
    // How things should be.
    /// What the condition speaks of is as the spec asks.
    #[strum(message = "Nothing to do.")]
    Ready,
    /// Every attempt ended with a valid number.
    #[strum(message = "Nothing to do: read the numbers in status.cells.")]
    Completed,
    /// The attempts of the run are under way.
    #[strum(message = "Wait; status.progress shows how far it has come.")]
    Running,
    /// The operator talks to a simulator, not to AWS.
    #[strum(message = "Nothing to do; take no number for that of real hardware.")]
    Simulated,
    /// The operator talks to AWS.
    #[strum(message = "Nothing to do.")]
    RealCloud,

    // On the way.
    /// Not looked at yet, or waiting for what must come first.
    #[strum(message = "Wait; the conditions before this one say what it waits for.")]
    Pending,
    /// AWS is creating what was asked for.
    #[strum(message = "Wait; a file system takes about ten minutes.")]
    Creating,
    /// The object is being deleted, and so are its resources.
    #[strum(message = "Wait; the message says which resource holds the deletion up.")]
    Deleting,
    /// The instance runs, but its SSM agent has not come online.
    #[strum(
        message = "Wait until the time in the message. If it never comes, check that the subnet reaches the SSM endpoints and that the instance profile has AmazonSSMManagedInstanceCore."
    )]
    WaitingForAgent,
    /// The node runs its boot steps.
    #[strum(message = "Wait; the message names the step.")]
    Booting,
    /// The jobs wait in the scheduler's queue.
    #[strum(message = "Wait, or look at what else runs on the cluster.")]
    Queued,
    /// AWS asks for slower calls.
    #[strum(message = "Nothing to do; the operator slows down and goes on.")]
    Throttled,

    // Capacity and offer.
    /// AWS has no capacity for the instance types in the zone. No partial fleet is kept.
    #[strum(
        message = "Wait for the next try in the message, or create another cluster with a second instance type, subnets in other zones, or fewer nodes."
    )]
    InsufficientCapacity,
    /// AWS does not offer the instance type in the zone.
    #[strum(
        message = "Delete the cluster and apply it again with another type, or with a subnet in a zone that offers it."
    )]
    NotOffered,
    /// A quota of the account is used up.
    #[strum(message = "Raise the quota named in the message, or ask for less.")]
    QuotaExceeded,
    /// A limit of this installation is reached.
    #[strum(
        message = "Ask for less, or have the administrator raise the operator flag named in the message."
    )]
    LimitExceeded,
    /// The hardware cannot do what the spec asks of it, such as EFA on a type without it.
    #[strum(
        message = "Delete the cluster and apply it again with another value in the field named in the message."
    )]
    UnsupportedConfiguration,

    // Failures of nodes and storage.
    /// The node did not finish booting in time.
    #[strum(
        message = "Read the step in the message; the records of all steps are on the state volume under boot/."
    )]
    BootTimeout,
    /// A boot step of the node failed.
    #[strum(
        message = "Read the step, the exit code and the last lines in the message; the records of all steps are on the state volume under boot/."
    )]
    BootFailed,
    /// FSx reports the file system as failed.
    #[strum(
        message = "Read FSx's own words in the message. One that never held data is replaced, at most three times; one that may hold data is kept for you to decide."
    )]
    FileSystemFailed,
    /// Instances disappeared that nobody asked to terminate.
    #[strum(message = "Nothing to do; they are replaced. If it repeats, ask AWS for the cause.")]
    LostInstances,
    /// EC2's status checks of the instance failed, twice and a while apart.
    #[strum(
        message = "Nothing to do: jobs are requeued and the instance is replaced. If it repeats, ask AWS for the cause."
    )]
    Impaired,
    /// AWS has scheduled to stop, restart or retire the instance.
    #[strum(
        message = "Nothing to do: the node gets no new job and is replaced when its job is over."
    )]
    ScheduledEvent,
    /// The queue was made smaller than the nodes it has.
    #[strum(message = "Wait until the jobs on these nodes are over, or raise the numbers again.")]
    QueueShrinks,
    /// The operator tried as often as it may and gave up.
    #[strum(
        message = "Remove the cause in the message, then delete the object and create it again."
    )]
    RetriesExhausted,

    // What the operator depends on.
    /// Something the spec refers to does not exist in AWS: a subnet, an image, a profile.
    #[strum(
        message = "Create what the message names, or delete the cluster and apply it again with another."
    )]
    DependencyMissing,
    /// AWS denies the operator an action.
    #[strum(message = "Allow the action named in the message in the operator's IAM policy.")]
    PermissionDenied,
    /// The operator has no AWS credentials, or AWS does not accept them.
    #[strum(message = "Check the service account's role or the credentials Secret of the chart.")]
    CredentialsInvalid,
    /// The credentials belong to another account than the one this object was made in.
    #[strum(message = "Give the operator credentials of the account in status.aws.accountId.")]
    AccountChanged,
    /// AWS does not answer, or answers with an error of its own.
    #[strum(message = "Nothing to do; the operator goes on trying.")]
    CloudUnavailable,
    /// The nodes cannot reach the AWS endpoints they need.
    #[strum(message = "Give the subnet a NAT gateway or the endpoints named in the message.")]
    NoEgress,
    /// Resources of an earlier object of the same namespace and name still exist.
    #[strum(message = "Delete them, or set the annotation hpcops.dev/ignore-predecessor: <uid>.")]
    PredecessorFound,
    /// The status holds an intent of a newer operator, which this one does not touch.
    #[strum(message = "Upgrade the operator to the version that wrote it, or a newer one.")]
    UnknownIntent,

    // Brakes.
    /// The annotation hpcops.dev/paused holds the operator off.
    #[strum(message = "Remove the annotation to go on.")]
    Paused,
    /// The operator runs with --dry-run: the message says what it would do.
    #[strum(message = "Restart the operator without --dry-run to do it.")]
    DryRun,
    /// The operator holds a termination of many instances at once.
    #[strum(message = "Check that it is meant, then do as the message says.")]
    MassDeletionHeld,
    /// The spec is not valid in a way that admission could not see.
    #[strum(
        message = "Create another object with another value in the field named in the message."
    )]
    InvalidSpec,

    // Runs.
    /// The cluster of the run does not exist.
    #[strum(message = "Create it in the run's namespace, or delete the run.")]
    ClusterNotFound,
    /// The cluster of the run is not ready.
    #[strum(message = "Wait, or read the cluster's conditions.")]
    ClusterNotReady,
    /// The cluster of the run is being deleted; its jobs are cancelled.
    #[strum(message = "Create the cluster and the run again.")]
    ClusterDeleting,
    /// The cluster has no queue of that name.
    #[strum(message = "Delete the run and create it with a queue of the cluster.")]
    QueueNotFound,
    /// The cluster has no user of that name.
    #[strum(
        message = "Add the user to spec.users of the cluster, or delete the run and create it with one of its users."
    )]
    UserNotFound,
    /// The queue has fewer nodes than a job, or a cell of a matrix, needs.
    #[strum(
        message = "Raise the queue's maxNodes, or create the run, or submit the job, with fewer nodes."
    )]
    TooFewNodes,
    /// The cluster has no shared storage, where a run keeps its logs.
    #[strum(
        message = "Create another cluster with an entry in spec.aws.storage, and the run on it."
    )]
    StorageMissing,
    /// No attempt ended with a valid number.
    #[strum(
        message = "Read the messages in status.attempts; the results ConfigMaps hold the last lines of each log."
    )]
    Failed,
    /// There are no results, because no attempt ended with a valid number.
    #[strum(message = "Read why in the condition Succeeded and in status.attempts.")]
    NoNumbers,
    /// Some attempts ended without a valid number.
    #[strum(message = "Read the messages in status.attempts; the numbers leave these out.")]
    PartiallyFailed,
    /// The program left with an exit code other than 0.
    #[strum(message = "Read the last lines of its log in the results ConfigMap.")]
    ExitCode,
    /// The scheduler no longer knows the job and it left no exit record.
    #[strum(message = "Look whether its node was lost; create the run again.")]
    JobLost,
    /// The job went over another network than the one asked for.
    #[strum(message = "Check the queue's networkInterface and the image's MPI.")]
    FabricMismatch,
    /// The log does not prove what a valid attempt must prove.
    #[strum(message = "Read in the message which evidence is missing.")]
    EvidenceMissing,
    /// The log ends too early or does not have the expected form.
    #[strum(message = "Read the line named in the message in the log of the attempt.")]
    IncompleteLog,
}

impl Reason {
    /// Every reason, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    /// A sentence that says what is so.
    pub fn description(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }

    /// A sentence that says what the user can do.
    pub fn way_out(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }
}
