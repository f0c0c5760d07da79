-- Statements with which drivers and tools look around: of JDBC (tables, columns, schemas, types) and DBeaver.
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,  CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'  WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   WHEN 'i' THEN 'SYSTEM INDEX'   ELSE NULL   END  WHEN n.nspname = 'pg_toast' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TOAST TABLE'   WHEN 'i' THEN 'SYSTEM TOAST INDEX'   ELSE NULL   END  ELSE CASE c.relkind   WHEN 'r' THEN 'TEMPORARY TABLE'   WHEN 'p' THEN 'TEMPORARY TABLE'   WHEN 'i' THEN 'TEMPORARY INDEX'   WHEN 'S' THEN 'TEMPORARY SEQUENCE'   WHEN 'v' THEN 'TEMPORARY VIEW'   ELSE NULL   END  END  WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE'  WHEN 'i' THEN 'INDEX'  WHEN 'v' THEN 'VIEW'  ELSE NULL  END  ELSE NULL  END  AS TABLE_TYPE, d.description AS REMARKS,  '' as TYPE_CAT, '' as TYPE_SCHEM, '' as TYPE_NAME, '' AS SELF_REFERENCING_COL_NAME, '' AS REF_GENERATION  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c  LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid  AND (false  OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) ) ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME;
SELECT * FROM (SELECT n.nspname,c.relname,a.attname,a.atttypid,a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') as attidentity,nullif(a.attgenerated, '') as attgenerated,pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype FROM pg_catalog.pg_namespace n  JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)  JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)  JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)  LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)  LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)  LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')  LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')  WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped  AND n.nspname LIKE 'main' AND c.relname LIKE 'few') c WHERE true  ORDER BY nspname,c.relname,attnum ;
SELECT nspname AS TABLE_SCHEM, NULL AS TABLE_CATALOG FROM pg_catalog.pg_namespace  WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_'  OR nspname = (pg_catalog.current_schemas(true))[1]) AND (nspname !~ '^pg_toast_temp_'  OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_'))  ORDER BY TABLE_SCHEM;
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass ORDER BY nspname;
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate OR db.datname ='one' ORDER BY db.datname;
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C') LIMIT 2;
SELECT current_schema(),session_user;
SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid WHERE NOT a.attisdropped AND c.relname='few' ORDER BY a.attnum;
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid FROM pg_catalog.pg_type LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r from pg_namespace as ns join ( select s.r, (current_schemas(false))[s.r] as nspname from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r using ( nspname )) as sp ON sp.nspoid = typnamespace WHERE pg_type.oid = 20 ORDER BY sp.r, pg_type.oid DESC;
SHOW search_path;
SELECT nspname, has_schema_privilege(nspname, 'USAGE') FROM pg_namespace;
select c.oid, c.relname, pg_total_relation_size(c.oid), obj_description(c.oid, 'pg_class') from pg_class c where c.relkind = 'v' and c.relnamespace = 'main'::regnamespace;
SELECT setting FROM pg_settings WHERE name = 'server_version';
-- Keys, indexes and comments as JDBC asks for them, owners, privileges, and sizes of tables.
SELECT 'pg_class'::regclass::oid;
SELECT (information_schema._pg_expandarray(i.indkey)).n FROM pg_catalog.pg_index i;
SELECT r.name FROM (SELECT ct.relname AS name, information_schema._pg_expandarray(i.indkey) AS keys, a.attnum AS n FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON ct.oid = a.attrelid JOIN pg_catalog.pg_index i ON a.attrelid = i.indrelid WHERE i.indisprimary) r WHERE r.n = (r.keys).x;
WITH p AS (SELECT t.tablename AS t, has_table_privilege(current_user, '"main"."many"', 'delete') AS delete FROM pg_catalog.pg_tables t WHERE schemaname = 'main') SELECT * FROM p ORDER BY 1;
SELECT c.relname, s.n_live_tup FROM pg_class c LEFT JOIN pg_stat_user_tables s ON c.relname = s.relname WHERE c.relname = 'many';
SELECT s.nspname, r.rolname IS NOT NULL FROM pg_namespace s LEFT JOIN pg_roles r ON r.oid = s.nspowner WHERE s.nspname = 'main';
SELECT character_set_name FROM INFORMATION_SCHEMA.character_sets;
SELECT table_name, privilege_type FROM information_schema.table_privileges;
-- Foreign keys, as drivers of ODBC look for them.
SELECT 'one'::name AS "PKTABLE_CAT", n2.nspname, c2.relname, a2.attname, a1.attname, ref.i::int2, ref.conname
FROM (((((SELECT cn.oid, conrelid, conkey, confrelid, confkey, generate_series(array_lower(conkey, 1), array_upper(conkey, 1)) AS i, conname
  FROM pg_catalog.pg_constraint cn, pg_catalog.pg_class c, pg_catalog.pg_namespace n
  WHERE contype = 'f' AND conrelid = c.oid AND relname = 'many' AND n.oid = c.relnamespace AND n.nspname = 'main') ref
 INNER JOIN pg_catalog.pg_class c1 ON c1.oid = ref.conrelid) INNER JOIN pg_catalog.pg_namespace n1 ON n1.oid = c1.relnamespace)
 INNER JOIN pg_catalog.pg_attribute a1 ON a1.attrelid = c1.oid AND a1.attnum = conkey[i])
 INNER JOIN pg_catalog.pg_class c2 ON c2.oid = ref.confrelid) INNER JOIN pg_catalog.pg_namespace n2 ON n2.oid = c2.relnamespace
 INNER JOIN pg_catalog.pg_attribute a2 ON a2.attrelid = c2.oid AND a2.attnum = confkey[i]
ORDER BY ref.oid, ref.i;
-- Words of the language, as drivers of JDBC ask for those beside the standard's.
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{select,from,where}'::text[]) AND word LIKE 'pivot%';
SELECT generate_series(1, 3) AS i FROM pg_catalog.pg_namespace LIMIT 2;
-- Indexes, as SQLAlchemy 1.4 looks for them, and types and names as Metabase has them.
SELECT i.relname AS relname, ix.indisunique, a.attname, a.attnum, c.conrelid, ix.indkey
FROM pg_class t JOIN pg_index ix ON t.oid = ix.indrelid JOIN pg_class i ON i.oid = ix.indexrelid
 LEFT OUTER JOIN pg_attribute a ON t.oid = a.attrelid AND a.attnum = ANY(ix.indkey)
 LEFT OUTER JOIN pg_constraint c ON (ix.indrelid = c.conrelid AND ix.indexrelid = c.conindid AND c.contype IN ('p', 'u', 'x'))
WHERE t.relkind IN ('r', 'v', 'f', 'm', 'p') AND t.relname = 'many' AND ix.indisprimary = 'f' ORDER BY t.relname, i.relname;
SELECT c.column_name AS name, format('%s', c.udt_name) AS "database-type", format('%I.%I', c.table_schema, 'A b') AS place
FROM information_schema.columns c WHERE c.table_schema = 'main' AND c.table_name = 'few';
