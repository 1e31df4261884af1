// The service every fb303 server offers; the metastore extends it (semantics §2.1).

namespace java com.facebook.fb303
namespace cpp facebook.fb303
namespace py fb303
namespace js FB303

enum fb_status {
  DEAD = 0,
  STARTING = 1,
  ALIVE = 2,
  STOPPING = 3,
  STOPPED = 4,
  WARNING = 5,
}

service FacebookService {
  // Who answers, and how it is.
  string getName(),
  string getVersion(),
  fb_status getStatus(),
  string getStatusDetails(),

  // Counters by name, for instance calls per method.
  map<string, i64> getCounters(),
  i64 getCounter(1: string key),

  // Options are plain text, without meaning to the metastore.
  void setOption(1: string key, 2: string value),
  string getOption(1: string key),
  map<string, string> getOptions(),

  // A profile over so many seconds.
  string getCpuProfile(1: i32 profileDurationInSec),

  // Seconds since the epoch.
  i64 aliveSince(),

  // Nobody waits for these. Neither stops the server: Java clients send shutdown whenever they close a connection.
  oneway void reinitialize(),
  oneway void shutdown(),
}
