package org.apache.hadoop.hive.ql.io;

/** Stands in for the class of hive-exec, by which the rules for transactional tables know a format. */
public interface AcidOutputFormat {}
