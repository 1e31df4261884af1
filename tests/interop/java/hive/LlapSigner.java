package org.apache.hadoop.hive.llap.security;

/** The names that Hive's table of functions loads. PySpark has Hive's jars, but not the one with this class. */
public interface LlapSigner {
    interface Signable {}

    final class SignedMessage {}
}
