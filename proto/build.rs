//! Generates the Rust types of the messages; needs no protoc.

use std::error::Error;

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
    let descriptors = protox::compile(FILES, ["proto"])?;
    println!("cargo::rerun-if-changed=proto");
    let mut config = prost_build::Config::new();
    config.btree_map(["."]);
    for message in SHOWN {
        let path = format!(".watershed.v1.{message}");
        config.message_attribute(&path, "#[derive(serde::Serialize)]");
        for field in UNSEEN {
            config.field_attribute(format!("{path}.{field}"), "#[serde(skip)]");
        }
    }
    config
        .field_attribute(
            ".watershed.v1.CanvasSpec.variables_declared",
            "#[serde(rename = \"variables\")]",
        )
        .compile_fds(descriptors)?;
    Ok(())
}
