-- The catalog of Postgres 16, as far as clients look at it: views over what a caller may see, and functions that clients call.
--
-- Functions have the names of Postgres behind `_pg_`, relations of `information_schema` stand behind `information_schema_`: the
-- engine's own schemas of these names are built in.

CREATE SCHEMA seen;
CREATE TABLE seen.session(usr VARCHAR, db VARCHAR);
CREATE TABLE seen.databases(oid BIGINT, name VARCHAR);
CREATE TABLE seen.relations(oid BIGINT, name VARCHAR, kind VARCHAR, rows BIGINT, namespace BIGINT, description VARCHAR);
CREATE TABLE seen.columns(
  relation BIGINT, number SMALLINT, name VARCHAR, type BIGINT, size SMALLINT, modifier INTEGER, description VARCHAR
);

CREATE TABLE seen.types AS SELECT * FROM (VALUES
  (16, 'bool', 'boolean', 1, 'B', 1000), (17, 'bytea', 'bytea', -1, 'U', 1001), (18, 'char', '"char"', 1, 'Z', 1002),
  (19, 'name', 'name', 64, 'S', 1003), (20, 'int8', 'bigint', 8, 'N', 1016), (21, 'int2', 'smallint', 2, 'N', 1005),
  (23, 'int4', 'integer', 4, 'N', 1007), (24, 'regproc', 'regproc', 4, 'N', 1008), (25, 'text', 'text', -1, 'S', 1009),
  (26, 'oid', 'oid', 4, 'N', 1028), (114, 'json', 'json', -1, 'U', 199), (700, 'float4', 'real', 4, 'N', 1021),
  (701, 'float8', 'double precision', 8, 'N', 1022), (1042, 'bpchar', 'character', -1, 'S', 1014),
  (1043, 'varchar', 'character varying', -1, 'S', 1015), (1082, 'date', 'date', 4, 'D', 1182),
  (1083, 'time', 'time without time zone', 8, 'D', 1183), (1114, 'timestamp', 'timestamp without time zone', 8, 'D', 1115),
  (1184, 'timestamptz', 'timestamp with time zone', 8, 'D', 1185), (1186, 'interval', 'interval', 16, 'T', 1187),
  (1266, 'timetz', 'time with time zone', 12, 'D', 1270), (1700, 'numeric', 'numeric', -1, 'N', 1231),
  (2205, 'regclass', 'regclass', 4, 'N', 2210), (2206, 'regtype', 'regtype', 4, 'N', 2211), (2950, 'uuid', 'uuid', 16, 'U', 2951),
  (3802, 'jsonb', 'jsonb', -1, 'U', 3807)
) AS types(oid, name, shown, size, category, array_oid);

-- The catalog's own relations, by which clients name kinds of things.
CREATE TABLE seen.own AS SELECT * FROM (VALUES
  (1213::BIGINT, 'pg_tablespace'), (1247, 'pg_type'), (1249, 'pg_attribute'), (1255, 'pg_proc'), (1259, 'pg_class'), (1260, 'pg_authid'),
  (1262, 'pg_database'), (2601, 'pg_am'), (2604, 'pg_attrdef'), (2606, 'pg_constraint'), (2608, 'pg_depend'), (2610, 'pg_index'),
  (2612, 'pg_language'), (2615, 'pg_namespace'), (2618, 'pg_rewrite'), (2620, 'pg_trigger'), (3079, 'pg_extension'), (3501, 'pg_enum')
) AS own(oid, name);

CREATE VIEW pg_namespace AS SELECT * FROM (VALUES
  (11::BIGINT, 'pg_catalog', 10::BIGINT, NULL::VARCHAR[]), (2200, 'main', 10, NULL), (2201, 'metrics', 10, NULL), (13000, 'information_schema', 10, NULL)
) AS own(oid, nspname, nspowner, nspacl);

CREATE VIEW pg_class AS SELECT
  oid, name AS relname, namespace AS relnamespace, 0::BIGINT AS reltype, 0::BIGINT AS reloftype, 10::BIGINT AS relowner,
  if(kind = 'r', 2, 0)::BIGINT AS relam, oid AS relfilenode, 0::BIGINT AS reltablespace, 0::INTEGER AS relpages,
  coalesce(rows, -1)::FLOAT AS reltuples, 0::INTEGER AS relallvisible, 0::BIGINT AS reltoastrelid, false AS relhasindex,
  false AS relisshared, 'p' AS relpersistence, kind AS relkind,
  (SELECT count(*) FROM seen.columns own WHERE own.relation = oid)::SMALLINT AS relnatts, 0::SMALLINT AS relchecks,
  kind = 'v' AS relhasrules, false AS relhastriggers, false AS relhassubclass, false AS relrowsecurity,
  false AS relforcerowsecurity, true AS relispopulated, 'n' AS relreplident, false AS relispartition, 0::BIGINT AS relrewrite,
  0::BIGINT AS relfrozenxid, 0::BIGINT AS relminmxid, NULL::VARCHAR[] AS relacl, NULL::VARCHAR[] AS reloptions,
  NULL::VARCHAR AS relpartbound
FROM seen.relations;

CREATE VIEW pg_attribute AS SELECT
  relation AS attrelid, name AS attname, type AS atttypid, size AS attlen, number AS attnum, -1::INTEGER AS attcacheoff,
  modifier AS atttypmod, 0::SMALLINT AS attndims, size BETWEEN 1 AND 8 AS attbyval, 'i' AS attalign, 'p' AS attstorage,
  '' AS attcompression, false AS attnotnull, false AS atthasdef, false AS atthasmissing, '' AS attidentity, '' AS attgenerated,
  false AS attisdropped, true AS attislocal, 0::SMALLINT AS attinhcount, -1::SMALLINT AS attstattarget,
  if(type IN (25, 1043), 100, 0)::BIGINT AS attcollation, NULL::VARCHAR[] AS attacl, NULL::VARCHAR[] AS attoptions,
  NULL::VARCHAR[] AS attfdwoptions, NULL::VARCHAR AS attmissingval
FROM seen.columns;

CREATE VIEW pg_type AS
WITH own AS (
  SELECT oid, name, size, category, array_oid, 0 AS element FROM seen.types
  UNION ALL SELECT array_oid, '_' || name, -1, 'A', 0, oid FROM seen.types
)
SELECT
  oid::BIGINT AS oid, name AS typname, 11::BIGINT AS typnamespace, 10::BIGINT AS typowner, size::SMALLINT AS typlen,
  size BETWEEN 1 AND 8 AS typbyval, 'b' AS typtype, category AS typcategory, oid IN (16, 25, 26, 701, 1184, 1186) AS typispreferred,
  true AS typisdefined, ',' AS typdelim, 0::BIGINT AS typrelid, if(element = 0, '-', 'array_subscript_handler') AS typsubscript,
  element::BIGINT AS typelem, array_oid::BIGINT AS typarray, if(element = 0, name || 'in', 'array_in') AS typinput,
  if(element = 0, name || 'out', 'array_out') AS typoutput, if(element = 0, name || 'recv', 'array_recv') AS typreceive,
  if(element = 0, name || 'send', 'array_send') AS typsend, '-' AS typmodin, '-' AS typmodout, '-' AS typanalyze, 'i' AS typalign,
  'p' AS typstorage, false AS typnotnull, 0::BIGINT AS typbasetype, -1::INTEGER AS typtypmod, 0::INTEGER AS typndims,
  if(oid IN (19, 25, 1042, 1043), 100, 0)::BIGINT AS typcollation, NULL::VARCHAR AS typdefaultbin, NULL::VARCHAR AS typdefault,
  NULL::VARCHAR[] AS typacl
FROM own;

CREATE VIEW pg_database AS SELECT
  oid, name AS datname, 10::BIGINT AS datdba, 6::INTEGER AS encoding, 'c' AS datlocprovider, false AS datistemplate,
  true AS datallowconn, -1::INTEGER AS datconnlimit, 0::BIGINT AS datfrozenxid, 0::BIGINT AS datminmxid, 1663::BIGINT AS dattablespace,
  'C' AS datcollate, 'C' AS datctype, NULL::VARCHAR AS daticulocale, NULL::VARCHAR AS daticurules, NULL::VARCHAR AS datcollversion,
  NULL::VARCHAR[] AS datacl
FROM seen.databases;

CREATE VIEW pg_roles AS SELECT
  usr AS rolname, false AS rolsuper, true AS rolinherit, false AS rolcreaterole, false AS rolcreatedb, true AS rolcanlogin,
  false AS rolreplication, -1::INTEGER AS rolconnlimit, '********' AS rolpassword, NULL::TIMESTAMPTZ AS rolvaliduntil,
  false AS rolbypassrls, NULL::VARCHAR[] AS rolconfig, 10::BIGINT AS oid
FROM seen.session;
CREATE VIEW pg_user AS SELECT
  rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper, rolreplication AS userepl,
  rolbypassrls AS usebypassrls, rolpassword AS passwd, rolvaliduntil AS valuntil, rolconfig AS useconfig
FROM pg_roles;

CREATE VIEW pg_am AS SELECT 2::BIGINT AS oid, 'heap' AS amname, 'heap_tableam_handler' AS amhandler, 't' AS amtype;
CREATE VIEW pg_tablespace AS SELECT
  1663::BIGINT AS oid, 'pg_default' AS spcname, 10::BIGINT AS spcowner, NULL::VARCHAR[] AS spcacl, NULL::VARCHAR[] AS spcoptions;
CREATE VIEW pg_collation AS SELECT
  100::BIGINT AS oid, 'default' AS collname, 11::BIGINT AS collnamespace, 10::BIGINT AS collowner, 'd' AS collprovider,
  true AS collisdeterministic, -1::INTEGER AS collencoding, NULL::VARCHAR AS collcollate, NULL::VARCHAR AS collctype,
  NULL::VARCHAR AS colliculocale, NULL::VARCHAR AS collicurules, NULL::VARCHAR AS collversion;
CREATE VIEW pg_settings AS SELECT * FROM (VALUES
  ('server_version', '16.0'), ('server_version_num', '160000'), ('server_encoding', 'UTF8'), ('client_encoding', 'UTF8'),
  ('TimeZone', 'UTC'), ('search_path', 'main, metrics'), ('standard_conforming_strings', 'on'), ('transaction_read_only', 'on'),
  ('max_index_keys', '32'), ('max_identifier_length', '63')
) AS settings(name, setting);
CREATE VIEW pg_tables AS SELECT
  nspname AS schemaname, name AS tablename, usr AS tableowner, NULL::VARCHAR AS tablespace, false AS hasindexes, false AS hasrules,
  false AS hastriggers, false AS rowsecurity
FROM seen.relations JOIN pg_namespace own ON own.oid = namespace, seen.session WHERE kind = 'r';
CREATE VIEW pg_views AS SELECT nspname AS schemaname, name AS viewname, usr AS viewowner, NULL::VARCHAR AS definition
FROM seen.relations JOIN pg_namespace own ON own.oid = namespace, seen.session WHERE kind = 'v';

-- A function there, without arguments.
CREATE VIEW pg_get_keywords AS SELECT
  keyword_name AS word,
  CASE keyword_category WHEN 'reserved' THEN 'R' WHEN 'unreserved' THEN 'U' WHEN 'column_name' THEN 'C' ELSE 'T' END AS catcode,
  keyword_category <> 'reserved' AS barelabel, keyword_category AS catdesc, '' AS baredesc FROM duckdb_keywords();

-- What there is none of.
CREATE VIEW pg_attrdef AS SELECT 0::BIGINT AS oid, 0::BIGINT AS adrelid, 0::SMALLINT AS adnum, '' AS adbin WHERE false;
CREATE VIEW pg_constraint AS SELECT
  0::BIGINT AS oid, '' AS conname, 0::BIGINT AS connamespace, '' AS contype, false AS condeferrable, false AS condeferred,
  false AS convalidated, 0::BIGINT AS conrelid, 0::BIGINT AS contypid, 0::BIGINT AS conindid, 0::BIGINT AS conparentid,
  0::BIGINT AS confrelid, '' AS confupdtype, '' AS confdeltype, '' AS confmatchtype, false AS conislocal, 0::SMALLINT AS coninhcount,
  false AS connoinherit, NULL::SMALLINT[] AS conkey, NULL::SMALLINT[] AS confkey, NULL::BIGINT[] AS conpfeqop,
  NULL::BIGINT[] AS conppeqop, NULL::BIGINT[] AS conffeqop, NULL::SMALLINT[] AS confdelsetcols, NULL::BIGINT[] AS conexclop,
  '' AS conbin WHERE false;
CREATE VIEW pg_index AS SELECT
  0::BIGINT AS indexrelid, 0::BIGINT AS indrelid, 0::SMALLINT AS indnatts, 0::SMALLINT AS indnkeyatts, false AS indisunique,
  false AS indnullsnotdistinct, false AS indisprimary, false AS indisexclusion, false AS indimmediate, false AS indisclustered,
  false AS indisvalid, false AS indcheckxmin, false AS indisready, false AS indislive, false AS indisreplident,
  NULL::SMALLINT[] AS indkey, NULL::BIGINT[] AS indcollation, NULL::BIGINT[] AS indclass, NULL::SMALLINT[] AS indoption,
  NULL::VARCHAR AS indexprs, NULL::VARCHAR AS indpred WHERE false;
CREATE VIEW pg_description AS
SELECT oid AS objoid, 1259::BIGINT AS classoid, 0::INTEGER AS objsubid, description FROM seen.relations WHERE description <> ''
UNION ALL SELECT relation, 1259, number, description FROM seen.columns WHERE description <> '';
CREATE VIEW pg_shdescription AS SELECT 0::BIGINT AS objoid, 0::BIGINT AS classoid, '' AS description WHERE false;
CREATE VIEW pg_enum AS SELECT 0::BIGINT AS oid, 0::BIGINT AS enumtypid, 0::FLOAT AS enumsortorder, '' AS enumlabel WHERE false;
CREATE VIEW pg_range AS SELECT
  0::BIGINT AS rngtypid, 0::BIGINT AS rngsubtype, 0::BIGINT AS rngmultitypid, 0::BIGINT AS rngcollation, 0::BIGINT AS rngsubopc WHERE false;
CREATE VIEW pg_inherits AS SELECT 0::BIGINT AS inhrelid, 0::BIGINT AS inhparent, 0::INTEGER AS inhseqno, false AS inhdetachpending WHERE false;
CREATE VIEW pg_trigger AS SELECT
  0::BIGINT AS oid, 0::BIGINT AS tgrelid, 0::BIGINT AS tgparentid, '' AS tgname, 0::BIGINT AS tgfoid, 0::SMALLINT AS tgtype,
  '' AS tgenabled, false AS tgisinternal, 0::BIGINT AS tgconstrrelid, 0::BIGINT AS tgconstraint WHERE false;
CREATE VIEW pg_rewrite AS SELECT
  0::BIGINT AS oid, '' AS rulename, 0::BIGINT AS ev_class, '' AS ev_type, '' AS ev_enabled, false AS is_instead WHERE false;
CREATE VIEW pg_policy AS SELECT
  0::BIGINT AS oid, '' AS polname, 0::BIGINT AS polrelid, '' AS polcmd, false AS polpermissive, NULL::BIGINT[] AS polroles,
  '' AS polqual, '' AS polwithcheck WHERE false;
CREATE VIEW pg_statistic_ext AS SELECT
  0::BIGINT AS oid, 0::BIGINT AS stxrelid, '' AS stxname, 0::BIGINT AS stxnamespace, 0::BIGINT AS stxowner, 0::INTEGER AS stxstattarget,
  NULL::SMALLINT[] AS stxkeys, NULL::VARCHAR[] AS stxkind, '' AS stxexprs WHERE false;
CREATE VIEW pg_publication AS SELECT
  0::BIGINT AS oid, '' AS pubname, 0::BIGINT AS pubowner, false AS puballtables, false AS pubinsert, false AS pubupdate,
  false AS pubdelete, false AS pubtruncate, false AS pubviaroot WHERE false;
CREATE VIEW pg_publication_rel AS SELECT
  0::BIGINT AS oid, 0::BIGINT AS prpubid, 0::BIGINT AS prrelid, '' AS prqual, NULL::SMALLINT[] AS prattrs WHERE false;
CREATE VIEW pg_publication_namespace AS SELECT 0::BIGINT AS oid, 0::BIGINT AS pnpubid, 0::BIGINT AS pnnspid WHERE false;
CREATE VIEW pg_auth_members AS SELECT
  0::BIGINT AS oid, 0::BIGINT AS roleid, 0::BIGINT AS member, 0::BIGINT AS grantor, false AS admin_option, false AS inherit_option,
  false AS set_option WHERE false;
CREATE VIEW pg_sequence AS SELECT
  0::BIGINT AS seqrelid, 0::BIGINT AS seqtypid, 0::BIGINT AS seqstart, 0::BIGINT AS seqincrement, 0::BIGINT AS seqmax,
  0::BIGINT AS seqmin, 0::BIGINT AS seqcache, false AS seqcycle WHERE false;
CREATE VIEW pg_proc AS SELECT
  0::BIGINT AS oid, '' AS proname, 0::BIGINT AS pronamespace, 0::BIGINT AS proowner, 0::BIGINT AS prolang, '' AS prokind,
  false AS proretset, 0::SMALLINT AS pronargs, 0::BIGINT AS prorettype, NULL::BIGINT[] AS proargtypes, NULL::BIGINT[] AS proallargtypes,
  NULL::VARCHAR[] AS proargmodes, NULL::VARCHAR[] AS proargnames, '' AS prosrc WHERE false;
CREATE VIEW pg_language AS SELECT 0::BIGINT AS oid, '' AS lanname WHERE false;
CREATE VIEW pg_extension AS SELECT
  0::BIGINT AS oid, '' AS extname, 0::BIGINT AS extowner, 0::BIGINT AS extnamespace, false AS extrelocatable, '' AS extversion WHERE false;
CREATE VIEW pg_depend AS SELECT
  0::BIGINT AS classid, 0::BIGINT AS objid, 0::INTEGER AS objsubid, 0::BIGINT AS refclassid, 0::BIGINT AS refobjid,
  0::INTEGER AS refobjsubid, '' AS deptype WHERE false;
CREATE VIEW pg_foreign_table AS SELECT 0::BIGINT AS ftrelid, 0::BIGINT AS ftserver, NULL::VARCHAR[] AS ftoptions WHERE false;
CREATE VIEW pg_foreign_server AS SELECT 0::BIGINT AS oid, '' AS srvname, 0::BIGINT AS srvowner, 0::BIGINT AS srvfdw WHERE false;
CREATE VIEW pg_opfamily AS SELECT
  0::BIGINT AS oid, 0::BIGINT AS opfmethod, '' AS opfname, 0::BIGINT AS opfnamespace, 0::BIGINT AS opfowner WHERE false;
CREATE VIEW pg_opclass AS SELECT
  0::BIGINT AS oid, 0::BIGINT AS opcmethod, '' AS opcname, 0::BIGINT AS opcnamespace, false AS opcdefault WHERE false;
CREATE VIEW pg_matviews AS SELECT '' AS schemaname, '' AS matviewname, '' AS matviewowner, '' AS definition WHERE false;
CREATE VIEW pg_indexes AS SELECT
  '' AS schemaname, '' AS tablename, '' AS indexname, NULL::VARCHAR AS tablespace, '' AS indexdef WHERE false;
CREATE VIEW pg_db_role_setting AS SELECT 0::BIGINT AS setdatabase, 0::BIGINT AS setrole, NULL::VARCHAR[] AS setconfig WHERE false;
CREATE VIEW pg_stat_user_tables AS SELECT
  r.oid AS relid, nspname AS schemaname, name AS relname, 0::BIGINT AS seq_scan, rows AS n_live_tup, 0::BIGINT AS n_dead_tup
FROM seen.relations r JOIN pg_namespace own ON own.oid = namespace WHERE kind = 'r';
CREATE VIEW pg_event_trigger AS SELECT 0::BIGINT AS oid, '' AS evtname WHERE false;

CREATE VIEW information_schema_schemata AS SELECT
  db AS catalog_name, nspname AS schema_name, usr AS schema_owner, NULL::VARCHAR AS default_character_set_catalog,
  NULL::VARCHAR AS default_character_set_schema, NULL::VARCHAR AS default_character_set_name, NULL::VARCHAR AS sql_path
FROM pg_namespace, seen.session;
CREATE VIEW information_schema_tables AS SELECT
  db AS table_catalog, nspname AS table_schema, name AS table_name, if(kind = 'v', 'VIEW', 'BASE TABLE') AS table_type,
  NULL::VARCHAR AS self_referencing_column_name, NULL::VARCHAR AS reference_generation, NULL::VARCHAR AS user_defined_type_catalog,
  NULL::VARCHAR AS user_defined_type_schema, NULL::VARCHAR AS user_defined_type_name, 'NO' AS is_insertable_into, 'NO' AS is_typed,
  NULL::VARCHAR AS commit_action
FROM seen.relations JOIN pg_namespace own ON own.oid = namespace, seen.session;
CREATE VIEW information_schema_views AS SELECT
  db AS table_catalog, nspname AS table_schema, name AS table_name, NULL::VARCHAR AS view_definition, 'NONE' AS check_option,
  'NO' AS is_updatable, 'NO' AS is_insertable_into
FROM seen.relations JOIN pg_namespace own ON own.oid = namespace, seen.session WHERE kind = 'v';
CREATE VIEW information_schema_columns AS SELECT
  db AS table_catalog, nspname AS table_schema, r.name AS table_name, c.name AS column_name, c.number::INTEGER AS ordinal_position,
  NULL::VARCHAR AS column_default, 'YES' AS is_nullable, t.shown AS data_type, NULL::INTEGER AS character_maximum_length,
  NULL::INTEGER AS character_octet_length,
  CASE t.oid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
    WHEN 1700 THEN if(c.modifier >= 4, (c.modifier - 4) >> 16, NULL) END::INTEGER AS numeric_precision,
  CASE WHEN t.oid IN (20, 21, 23, 700, 701) THEN 2 WHEN t.oid = 1700 THEN 10 END::INTEGER AS numeric_precision_radix,
  CASE WHEN t.oid IN (20, 21, 23) THEN 0 WHEN t.oid = 1700 AND c.modifier >= 4 THEN (c.modifier - 4) & 65535 END::INTEGER AS numeric_scale,
  if(t.category = 'D', if(t.oid = 1082, 0, 6), NULL)::INTEGER AS datetime_precision, NULL::VARCHAR AS interval_type,
  db AS udt_catalog, 'pg_catalog' AS udt_schema, t.name AS udt_name, c.number::VARCHAR AS dtd_identifier, 'NO' AS is_self_referencing,
  'NO' AS is_identity, NULL::VARCHAR AS identity_generation, 'NEVER' AS is_generated, NULL::VARCHAR AS generation_expression,
  'NO' AS is_updatable
FROM seen.session, seen.columns c JOIN seen.relations r ON r.oid = c.relation JOIN seen.types t ON t.oid = c.type
  JOIN pg_namespace own ON own.oid = r.namespace;
CREATE VIEW information_schema_table_constraints AS SELECT
  '' AS constraint_catalog, '' AS constraint_schema, '' AS constraint_name, '' AS table_catalog, '' AS table_schema, '' AS table_name,
  '' AS constraint_type, '' AS is_deferrable, '' AS initially_deferred WHERE false;
CREATE VIEW information_schema_key_column_usage AS SELECT
  '' AS constraint_catalog, '' AS constraint_schema, '' AS constraint_name, '' AS table_catalog, '' AS table_schema, '' AS table_name,
  '' AS column_name, 0::INTEGER AS ordinal_position, 0::INTEGER AS position_in_unique_constraint WHERE false;
CREATE VIEW information_schema_constraint_column_usage AS SELECT
  '' AS table_catalog, '' AS table_schema, '' AS table_name, '' AS column_name, '' AS constraint_catalog, '' AS constraint_schema,
  '' AS constraint_name WHERE false;
CREATE VIEW information_schema_referential_constraints AS SELECT
  '' AS constraint_catalog, '' AS constraint_schema, '' AS constraint_name, '' AS unique_constraint_catalog,
  '' AS unique_constraint_schema, '' AS unique_constraint_name, '' AS match_option, '' AS update_rule, '' AS delete_rule WHERE false;
CREATE VIEW information_schema_character_sets AS SELECT 'UTF8' AS character_set_name, 'UCS' AS character_repertoire;
CREATE VIEW information_schema_table_privileges AS SELECT
  usr AS grantor, usr AS grantee, table_catalog, table_schema, table_name, 'SELECT' AS privilege_type, 'NO' AS is_grantable,
  'YES' AS with_hierarchy
FROM information_schema_tables, seen.session;
CREATE VIEW information_schema_role_table_grants AS FROM information_schema_table_privileges;
CREATE VIEW information_schema_routines AS SELECT '' AS routine_catalog, '' AS routine_schema, '' AS routine_name, '' AS routine_type WHERE false;
CREATE VIEW information_schema_sequences AS SELECT '' AS sequence_catalog, '' AS sequence_schema, '' AS sequence_name WHERE false;

-- Names as `::regclass` and `::regtype` read and show them. A number stays what it is.
CREATE MACRO _pg_regclass(x) AS coalesce(TRY_CAST(x AS BIGINT),
  (SELECT min_by(r.oid, namespace) FROM seen.relations r JOIN pg_namespace own ON own.oid = namespace
    WHERE replace(x::VARCHAR, '"', '') IN (name, nspname || '.' || name)),
  (SELECT min(own.oid) FROM seen.own own WHERE replace(x::VARCHAR, '"', '') IN (own.name, 'pg_catalog.' || own.name)));
CREATE MACRO _pg_regclass_text(x) AS coalesce(
  (SELECT min(name) FROM seen.relations WHERE oid = _pg_regclass(x)),
  (SELECT min(name) FROM seen.own WHERE oid = _pg_regclass(x)), x::VARCHAR);
CREATE MACRO _pg_regtype(x) AS coalesce(TRY_CAST(x AS BIGINT),
  (SELECT min(oid) FROM pg_type WHERE typname = replace(replace(x::VARCHAR, 'pg_catalog.', ''), '"', '')),
  (SELECT min(oid) FROM seen.types WHERE shown = lower(x::VARCHAR)));
CREATE MACRO _pg_format_type(t, m) AS (
  SELECT min(CASE WHEN own.typelem <> 0 THEN base.shown || '[]'
    WHEN own.oid = 1700 AND m >= 4 THEN 'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) || ')'
    ELSE base.shown END)
  FROM pg_type own JOIN seen.types base ON base.oid = if(own.typelem <> 0, own.typelem, own.oid) WHERE own.oid = t);
CREATE MACRO _pg_regtype_text(x) AS coalesce(_pg_format_type(_pg_regtype(x), -1), x::VARCHAR);
CREATE MACRO _pg_regnamespace(x) AS coalesce(TRY_CAST(x AS BIGINT),
  (SELECT min(oid) FROM pg_namespace WHERE nspname = replace(x::VARCHAR, '"', '')));
CREATE MACRO _pg_regnamespace_text(x) AS coalesce((SELECT min(nspname) FROM pg_namespace WHERE oid = _pg_regnamespace(x)), x::VARCHAR);
CREATE MACRO _pg_regrole(x) AS coalesce(TRY_CAST(x AS BIGINT), (SELECT min(oid) FROM pg_roles WHERE rolname = x::VARCHAR));
CREATE MACRO _pg_regrole_text(x) AS coalesce((SELECT min(rolname) FROM pg_roles WHERE oid = _pg_regrole(x)), x::VARCHAR);
CREATE MACRO _pg_to_regclass(x) AS _pg_regclass(x);
CREATE MACRO _pg_to_regtype(x) AS _pg_regtype(x);

CREATE MACRO _pg_version() AS 'PostgreSQL 16.0 (Watershed, which reads)';
CREATE MACRO _pg_current_database() AS (SELECT min(db) FROM seen.session);
CREATE MACRO _pg_current_catalog() AS (SELECT min(db) FROM seen.session);
CREATE MACRO _pg_current_user() AS (SELECT min(usr) FROM seen.session);
CREATE MACRO _pg_session_user() AS (SELECT min(usr) FROM seen.session);
CREATE MACRO _pg_current_role() AS (SELECT min(usr) FROM seen.session);
CREATE MACRO _pg_user() AS (SELECT min(usr) FROM seen.session);
CREATE MACRO _pg_array_remove(items, gone) AS list_filter(items, lambda item: item IS DISTINCT FROM gone);
-- Who sees metrics views alone is there by default.
CREATE MACRO _pg_current_schema() AS if((SELECT min(namespace) FROM seen.relations) = 2201, 'metrics', 'main');
CREATE MACRO _pg_current_schemas(implicit) AS if(implicit, ['pg_catalog', 'main', 'metrics'], ['main', 'metrics']);
CREATE MACRO _pg_current_setting(s) AS (SELECT min(setting) FROM pg_settings own WHERE lower(own.name) = lower(s)),
  (s, missing) AS (SELECT min(setting) FROM pg_settings own WHERE lower(own.name) = lower(s));
CREATE MACRO _pg_set_config(name, value, is_local) AS value;
CREATE MACRO _pg_pg_backend_pid() AS 1;
CREATE MACRO _pg_pg_advisory_unlock_all() AS NULL;
CREATE MACRO _pg_pg_client_encoding() AS 'UTF8';
CREATE MACRO _pg__pg_expandarray(items) AS {'x': items[1], 'n': 1};
CREATE MACRO _pg_string_to_array(t, d) AS string_split(t, d);
CREATE MACRO _pg_quote_literal(x) AS '''' || replace(x::VARCHAR, '''', '''''') || '''';
CREATE MACRO _pg_pg_is_in_recovery() AS false;
CREATE MACRO _pg_pg_my_temp_schema() AS 0;
CREATE MACRO _pg_pg_is_other_temp_schema(x) AS false;
CREATE MACRO _pg_pg_encoding_to_char(x) AS 'UTF8';
CREATE MACRO _pg_pg_char_to_encoding(x) AS 6;
CREATE MACRO _pg_pg_get_userbyid(x) AS (SELECT min(usr) FROM seen.session);
CREATE MACRO _pg_pg_table_is_visible(x) AS (x IN (SELECT oid FROM seen.relations));
CREATE MACRO _pg_pg_type_is_visible(x) AS true;
CREATE MACRO _pg_pg_function_is_visible(x) AS true;
CREATE MACRO _pg_pg_collation_is_visible(x) AS true;
CREATE MACRO _pg_pg_opclass_is_visible(x) AS true;
CREATE MACRO _pg_pg_opfamily_is_visible(x) AS true;
CREATE MACRO _pg_pg_relation_is_publishable(x) AS false;
CREATE MACRO _pg_pg_has_role(a, b) AS true, (a, b, c) AS true;
CREATE MACRO _pg_has_table_privilege(a, b) AS upper(b) = 'SELECT', (a, b, c) AS upper(c) = 'SELECT';
CREATE MACRO _pg_has_column_privilege(a, b, c) AS upper(c) = 'SELECT', (a, b, c, d) AS upper(d) = 'SELECT';
CREATE MACRO _pg_has_any_column_privilege(a, b) AS upper(b) = 'SELECT', (a, b, c) AS upper(c) = 'SELECT';
CREATE MACRO _pg_has_schema_privilege(a, b) AS upper(b) = 'USAGE', (a, b, c) AS upper(c) = 'USAGE';
CREATE MACRO _pg_has_database_privilege(a, b) AS upper(b) = 'CONNECT', (a, b, c) AS upper(c) = 'CONNECT';
CREATE MACRO _pg_has_function_privilege(a, b) AS true, (a, b, c) AS true;
CREATE MACRO _pg_obj_description(x) AS (SELECT min(description) FROM pg_description WHERE objoid = x AND objsubid = 0),
  (x, c) AS (SELECT min(description) FROM pg_description WHERE objoid = x AND objsubid = 0);
CREATE MACRO _pg_col_description(x, n) AS (SELECT min(description) FROM pg_description WHERE objoid = x AND objsubid = n);
CREATE MACRO _pg_shobj_description(x, c) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_expr(x, r) AS NULL::VARCHAR, (x, r, p) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_viewdef(x) AS NULL::VARCHAR, (x, p) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_indexdef(x) AS NULL::VARCHAR, (x, n, p) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_constraintdef(x) AS NULL::VARCHAR, (x, p) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_triggerdef(x) AS NULL::VARCHAR, (x, p) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_ruledef(x) AS NULL::VARCHAR, (x, p) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_partkeydef(x) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_serial_sequence(t, c) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_statisticsobjdef_columns(x) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_function_result(x) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_function_arguments(x) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_get_function_identity_arguments(x) AS NULL::VARCHAR;
CREATE MACRO _pg_pg_relation_size(x) AS NULL::BIGINT, (x, f) AS NULL::BIGINT;
CREATE MACRO _pg_pg_table_size(x) AS NULL::BIGINT;
CREATE MACRO _pg_pg_total_relation_size(x) AS NULL::BIGINT;
CREATE MACRO _pg_pg_database_size(x) AS NULL::BIGINT;
CREATE MACRO _pg_pg_tablespace_location(x) AS '';
CREATE MACRO _pg_quote_ident(x) AS if(regexp_full_match(x, '[a-z_][a-z0-9_$]*'), x, '"' || replace(x, '"', '""') || '"');
-- A part of a text for each of `%s`, `%I` and `%L`.
CREATE MACRO _pg_shown(kind, v) AS CASE kind WHEN 'I' THEN _pg_quote_ident(v::VARCHAR)
  WHEN 'L' THEN coalesce(_pg_quote_literal(v), 'NULL') ELSE coalesce(v::VARCHAR, '') END;
CREATE MACRO _pg_part(f, n) AS coalesce(string_split_regex(f, '%[sIL]')[n], '');
CREATE MACRO _pg_kind(f, n) AS regexp_extract_all(f, '%([sIL])', 1)[n];
CREATE MACRO _pg_format(f) AS f,
  (f, a) AS _pg_part(f, 1) || _pg_shown(_pg_kind(f, 1), a) || _pg_part(f, 2),
  (f, a, b) AS _pg_part(f, 1) || _pg_shown(_pg_kind(f, 1), a) || _pg_part(f, 2) || _pg_shown(_pg_kind(f, 2), b) || _pg_part(f, 3);
CREATE MACRO _pg_array_upper(x, d) AS if(d = 1, nullif(len(x), 0), NULL);
CREATE MACRO _pg_array_lower(x, d) AS if(d = 1 AND len(x) > 0, 1, NULL);
CREATE MACRO _pg_json_build_object(a, b) AS json_object(a::VARCHAR, b),
  (a, b, c, d) AS json_object(a::VARCHAR, b, c::VARCHAR, d),
  (a, b, c, d, e, f) AS json_object(a::VARCHAR, b, c::VARCHAR, d, e::VARCHAR, f),
  (a, b, c, d, e, f, g, h) AS json_object(a::VARCHAR, b, c::VARCHAR, d, e::VARCHAR, f, g::VARCHAR, h),
  (a, b, c, d, e, f, g, h, i, j) AS json_object(a::VARCHAR, b, c::VARCHAR, d, e::VARCHAR, f, g::VARCHAR, h, i::VARCHAR, j),
  (a, b, c, d, e, f, g, h, i, j, k, l) AS json_object(a::VARCHAR, b, c::VARCHAR, d, e::VARCHAR, f, g::VARCHAR, h, i::VARCHAR, j, k::VARCHAR, l),
  (a, b, c, d, e, f, g, h, i, j, k, l, m, n) AS json_object(a::VARCHAR, b, c::VARCHAR, d, e::VARCHAR, f, g::VARCHAR, h, i::VARCHAR, j, k::VARCHAR, l, m::VARCHAR, n),
  (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) AS json_object(a::VARCHAR, b, c::VARCHAR, d, e::VARCHAR, f, g::VARCHAR, h, i::VARCHAR, j, k::VARCHAR, l, m::VARCHAR, n, o::VARCHAR, p);
