//! Writes the Rust types of the messages into `proto/generated`; with `--check` compares them with what is there. Needs no
//! protoc, and is no part of the workspace, so that ordinary builds compile neither this nor the crates that parse messages.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

const FILES: [&str; 10] = [
    "watershed/v1/value.proto",
    "watershed/v1/common.proto",
    "watershed/v1/model.proto",
    "watershed/v1/metrics_view.proto",
    "watershed/v1/dashboard.proto",
    "watershed/v1/connector.proto",
    "watershed/v1/query.proto",
    "watershed/v1/project_parser.proto",
    "watershed/v1/workload.proto",
    "watershed/v1/managed.proto",
];

/// The file that is made of them.
const GENERATED: &str = "watershed.v1.rs";

/// Messages that people see as JSON, with the names of the project format.
const SHOWN: [&str; 58] = [
    "FieldSelector",
    "SecurityRule",
    "SecurityLayer",
    "TimeRange",
    "ComparisonTimeRange",
    "DashboardDefaults",
    "MetricsViewSpec",
    "MetricsViewDimension",
    "MetricsViewMeasure",
    "DimensionSelector",
    "MetricsViewWindow",
    "MetricsViewAnnotation",
    "MetricsViewCache",
    "MetricsViewRollup",
    "FieldProblem",
    "ExploreSpec",
    "ThemeSpec",
    "ComponentSpec",
    "CanvasSpec",
    "CanvasRow",
    "CanvasTab",
    "CanvasItem",
    "ConnectorSpec",
    "MigrationSpec",
    "MetricsViewState",
    "ApiSpec",
    "AlertSpec",
    "ReportSpec",
    "ReportExport",
    "Notifier",
    "Intervals",
    "Schedule",
    "DataResolver",
    "Program",
    "Container",
    "Mount",
    "Port",
    "Stopping",
    "OutputLimits",
    "JobSpec",
    "JobRetries",
    "JobSchedule",
    "ServiceSpec",
    "RestartPolicy",
    "HealthCheck",
    "HttpCheck",
    "TcpCheck",
    "Rollout",
    "Operator",
    "ManagedSpec",
    "ManagedWindow",
    "ManagedCall",
    "ManagedRequest",
    "ManagedStep",
    "ManagedAction",
    "ManagedRule",
    "ManagedPart",
    "ManagedRef",
];

/// Fields of them that only say where something stands, or what it was made of.
const UNSEEN: [&str; 15] = [
    "meaning",
    "variables",
    "fault",
    "spots",
    "filter_spots",
    "at",
    "table_at",
    "time_at",
    "lookup_at",
    "comparison_at",
    "metrics_view_at",
    "proof",
    "sql_at",
    "valid_spec",
    "operator",
];

fn main() -> Result<(), Box<dyn Error>> {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("this stands beside the messages")?;
    let descriptors = protox::compile(FILES, [proto.join("proto")])?;
    let mut config = prost_build::Config::new();
    config.btree_map(["."]);
    for message in SHOWN {
        let path = format!(".watershed.v1.{message}");
        config.message_attribute(&path, "#[derive(serde::Serialize)]");
        for field in UNSEEN {
            config.field_attribute(format!("{path}.{field}"), "#[serde(skip)]");
        }
    }
    config.field_attribute(
        ".watershed.v1.CanvasSpec.variables_declared",
        "#[serde(rename = \"variables\")]",
    );
    let made = tempfile::tempdir()?;
    config.out_dir(made.path()).compile_fds(descriptors)?;
    let made = fs::read_to_string(made.path().join(GENERATED))?;
    let kept = proto.join("generated").join(GENERATED);
    if env::args().all(|argument| argument != "--check") {
        return Ok(fs::write(kept, made)?);
    }
    if fs::read_to_string(&kept)? != made {
        return Err(format!("{} is not what the messages say: run scripts/messages", kept.display()).into());
    }
    Ok(())
}
