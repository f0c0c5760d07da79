//! Tests of rows as Arrow batches.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_schema::DataType;

use super::*;
use crate::olap::Batches;

async fn batches(bench: &Bench, sql: &str, limit: Option<u64>) -> Result<Batches, QueryError> {
    let query = Query {
        sql: sql.to_owned(),
        limit,
        timeout: None,
        ..Query::default()
    };
    let batching = bench.engine.batching().unwrap();
    batching.query_batches(query, &bench.cancel).await
}

#[tokio::test]
async fn columns_keep_their_types_and_become_text_where_arrow_would_lose_a_part() {
    let bench = bench();
    let sql = "SELECT 1::BIGINT AS whole, 12.5::DECIMAL(18,3) AS decimal, 'x' AS text, [1, NULL] AS list, \
               sum(1::BIGINT) AS huge, '101'::BIT AS bits, INTERVAL '1 month 2 seconds' AS span, \
               '12:00:00+02'::TIMETZ AS offset_time, 7::UHUGEINT AS unsigned, ['1'::BIT] AS many";
    let mut rows = batches(&bench, sql, None).await.unwrap();
    let types: Vec<DataType> = rows
        .schema()
        .fields()
        .iter()
        .map(|it| it.data_type().clone())
        .collect();
    assert_eq!(
        types[..3],
        [DataType::Int64, DataType::Decimal128(18, 3), DataType::Utf8]
    );
    assert!(matches!(types[3], DataType::List(_)), "{types:?}");
    assert_eq!(types[4], DataType::Decimal128(38, 0));
    assert_eq!(types[5..], vec![DataType::Utf8; 5]);
    let batch = rows.next().await.unwrap().unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), 1);
    assert_eq!(batch.column(1).as_primitive::<Decimal128Type>().value(0), 12_500);
    let texts = (5..10).map(|index| batch.column(index).as_string::<i32>().value(0).to_owned());
    let texts: Vec<String> = texts.collect();
    assert_eq!(
        texts,
        ["101", "1 month 00:00:02", "12:00:00+02", "7", "[\"1\"]"],
        "as the engine writes them"
    );
    assert!(rows.next().await.is_none());
}

#[tokio::test]
async fn a_limit_cuts_batches_and_says_so() {
    let bench = bench();
    for (limit, truncated) in [(0, true), (5, true), (4_999, true), (5_000, false)] {
        let mut rows = batches(&bench, "SELECT * FROM range(5000)", Some(limit))
            .await
            .unwrap();
        let mut number = 0;
        while let Some(batch) = rows.next().await {
            number += batch.unwrap().num_rows() as u64;
        }
        assert_eq!((number, rows.truncated()), (limit, truncated));
    }
}

#[tokio::test]
async fn integers_beyond_the_digits_of_decimals_are_refused() {
    let bench = bench();
    let most = "99999999999999999999999999999999999999";
    let fits = format!("SELECT {most}::HUGEINT AS x");
    let mut rows = batches(&bench, &fits, None).await.unwrap();
    let batch = rows.next().await.unwrap().unwrap();
    let digits = batch.column(0).as_primitive::<Decimal128Type>().value(0);
    assert_eq!(digits.to_string(), most);
    let mut rows = batches(
        &bench,
        &format!("{fits} UNION ALL SELECT {most}::HUGEINT + 1"),
        None,
    )
    .await
    .unwrap();
    let mut last = None;
    while let Some(batch) = rows.next().await {
        last = Some(batch.map(|batch| batch.num_rows()));
    }
    let error = last.unwrap().unwrap_err().to_string();
    assert!(error.contains("cast it to VARCHAR"), "{error}");
}

#[tokio::test]
async fn a_stream_begins_with_its_schema_and_ends_with_its_mark_unless_the_rows_fail() {
    let bench = bench();
    let read = async |sql: &str| {
        // The engine may find the mistake before it gives the first row.
        let mut stream = match batches(&bench, sql, None).await {
            Ok(batches) => batches.encode().unwrap(),
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut all = Vec::new();
        loop {
            match stream.next().await {
                Some(Ok(bytes)) => all.extend(bytes),
                Some(Err(error)) => break (all, Some(error)),
                None => break (all, None),
            }
        }
    };
    // Eight bytes: the sign of a message, and its length of none.
    let mark = [255, 255, 255, 255, 0, 0, 0, 0];
    let (whole, error) = read("SELECT range AS x FROM range(5000)").await;
    assert!(error.is_none() && whole.ends_with(&mark), "{error:?}");
    let reader = arrow_ipc::reader::StreamReader::try_new(whole.as_slice(), None).unwrap();
    let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 5_000);
    let (none, error) = read("SELECT 1 AS x LIMIT 0").await;
    assert!(error.is_none() && none.ends_with(&mark));
    let fails =
        "SELECT CASE WHEN range = 100000 THEN error('late')::BIGINT ELSE range END AS x FROM range(200000)";
    let (part, error) = read(fails).await;
    assert!(error.is_some() && !part.ends_with(&mark));
}
