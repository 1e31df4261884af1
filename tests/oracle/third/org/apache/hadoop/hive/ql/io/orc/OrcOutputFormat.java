package org.apache.hadoop.hive.ql.io.orc;

import org.apache.hadoop.hive.ql.io.AcidOutputFormat;

/** Stands in for the class of hive-exec. */
public class OrcOutputFormat implements AcidOutputFormat {}
