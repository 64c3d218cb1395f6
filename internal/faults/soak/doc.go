// Package soak holds the tests in which a real redis-server and a real beanstalkd stand behind proxies that do harm,
// are killed, stopped and started again, while many callers load them through this library; afterwards the servers
// say what they ran, and every word that a caller was told is held against it.
//
// A run is made of rounds. All choices of a round (options, troubles, who cancels what) follow from -faults.seed and
// the number of the round; when exactly a trouble meets which command does not. The package knows what may be
// promised of the two servers and nothing of how the library keeps it. For tests only.
package soak
