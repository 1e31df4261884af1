package org.apache.hadoop.hive.ql.io.orc;

import org.apache.hadoop.hive.ql.io.AcidInputFormat;

/** Stands in for the class of hive-exec. */
public class OrcInputFormat implements AcidInputFormat {}
