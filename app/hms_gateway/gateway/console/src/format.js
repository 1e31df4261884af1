// Numbers, sizes and times as people read them, in the zone of the reader.

const COUNT = new Intl.NumberFormat("en");
const SIZE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DATE = new Intl.DateTimeFormat("en-CA", {
  dateStyle: "short",
  timeStyle: "medium",
  hourCycle: "h23",
});
const STEPS = [
  [60, "s"],
  [60, "min"],
  [24, "h"],
  [Infinity, "d"],
];

export function count(number) {
  return COUNT.format(number);
}

export function bytes(number) {
  let value = Number(number);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${SIZE.format(value)} ${UNITS[unit]}`;
}

/** Milliseconds since 1970 as a date and time. */
export function time(milliseconds) {
  return DATE.format(new Date(milliseconds)).replace(",", "");
}

/** A span of milliseconds in its largest unit, such as "3 min". */
export function span(milliseconds) {
  let value = Math.max(milliseconds, 0) / 1000;
  for (const [size, unit] of STEPS) {
    if (value < size) return `${Math.floor(value)} ${unit}`;
    value /= size;
  }
  return "";
}

export function percent(share) {
  return `${SIZE.format(share * 100)} %`;
}

/** The name of a partition as pairs of key and value. */
export function partitionValues(name) {
  return name.split("/").map((part) => {
    const at = part.indexOf("=");
    return [unescapeName(part.slice(0, at)), unescapeName(part.slice(at + 1))];
  });
}

function unescapeName(text) {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
}

const FORMATS = [
  [/parquet/i, "Parquet"],
  [/\borc\b|OrcInputFormat/i, "ORC"],
  [/avro/i, "Avro"],
  [/json/i, "JSON"],
  [/csv/i, "CSV"],
  [/rcfile|columnarserde/i, "RCFile"],
  [/hbase/i, "HBase"],
  [/kudu/i, "Kudu"],
  [/sequencefile/i, "SequenceFile"],
  [/TextInputFormat|LazySimpleSerDe|OpenCSV/i, "Text"],
];

/** The format of files as people call it; the class where it has no such name, "" without one. */
export function formatOf(sd) {
  const classes = [sd?.serdeInfo?.serializationLib, sd?.inputFormat].filter(Boolean);
  for (const name of classes) {
    const known = FORMATS.find(([pattern]) => pattern.test(name));
    if (known) return known[1];
  }
  return classes[0]?.split(".").at(-1) ?? "";
}

/** A parameter that is a number, or else what Spark keeps under its own name; undefined without one, such as for -1. */
export function numberIn(parameters, name) {
  const text = [name, `spark.sql.statistics.${name}`].map((key) => parameters?.get(key)).find((each) => /^\d+$/.test(each ?? ""));
  return text === undefined ? undefined : Number(text);
}

/** A value as text; "" where it is not known. */
export function said(value, say) {
  return value === undefined ? "" : say(value);
}
