package hostile

import (
	"strings"
	"testing"
	"time"
)

const dialTimeout = 5 * time.Second // the default

// Covers: C09, C08, S0-52
func TestAHandshakeThatIsAnsweredWithRubbishIsAFailedDialAndCostsNoCommandAnything(t *testing.T) {
	for k, raws := range map[*kit][]string{
		keep(redisKit()): {
			"$536870912\r\n", "$2000000\r\n", "*134217728\r\n", "HTTP/1.1 400 Bad Request\r\n", "\r\n", "$-2\r\n", ":99999999999999999999\r\n",
			strings.Repeat("*1\r\n", 100_000), "\x16\x03\x01\x02\x00\x01", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "-ERR max number of clients reached\r\n",
			"-LOADING soon\r\n", "%1\r\n+server\r\n+redis\r\n:1\r\n$2\r\nid\r\n+PANG\r\n", "%1\r\n+server\r\n+redis\r\n:1\r\n$2\r\nid\r\n-MASTERDOWN no\r\n",
		},
		keep(beanstalkKit()): {
			"OK 2147483648\r\n", "OK 2\r\n--\r\n", "RESERVED 1 -5\r\n", "INSERTED 1\r\nINSERTED 2\r\n", "\r\n", "USING other\r\nUSING other\r\n",
			"OUT_OF_MEMORY\r\n", "INTERNAL_ERROR\r\n", "USING default\r\nDRAINING\r\n", "HTTP/1.1 400 Bad Request\r\n",
		},
	} {
		for _, raw := range raws {
			t.Run(k.name+" "+short(raw), func(t *testing.T) {
				attack{welcome: inWelcome(saying(raw)), calm: true}.run(t, *k)
			})
		}
	}
}

// Covers: C09, C42, C08
func TestAHandshakeThatIsNeverAnsweredWholeEndsAtTheDialTimeout(t *testing.T) {
	for k, evils := range map[*kit]map[string]func(*visit, request, *meter){
		keep(redisKit()): {
			"silence": saying(""), "half a line": saying("%1\r\n+serv"), "drip": dripping("%1\r\n+server\r\n+redis\r\n"), "announcement": saying("$1000000\r\nx"),
			"pushes": babbling("", news),
		},
		keep(beanstalkKit()): {"silence": saying(""), "half a line": saying("USING defau"), "drip": dripping("USING default\r\n")},
	} {
		for name, evil := range evils {
			t.Run(k.name+" "+name, func(t *testing.T) {
				attack{welcome: inWelcome(evil), calm: true, within: dialTimeout}.run(t, *k)
			})
		}
	}
}

// Covers: C09, C08
func TestAHandshakeThatIsAnsweredWithoutEndIsGivenUpAtALimit(t *testing.T) {
	for name, evil := range map[string]func(*visit, request, *meter){
		"a line": babbling("+", "a"), "attributes": babbling("", "|1\r\n+k\r\n+v\r\n"), "a number": babbling(":", "1"),
	} {
		t.Run("redis "+name, func(t *testing.T) {
			attack{welcome: inWelcome(evil), calm: true, within: time.Second, heap: 8 * mib}.run(t, redisKit())
		})
	}
	t.Run("beanstalkd a line", func(t *testing.T) {
		attack{welcome: inWelcome(babbling("USING ", "a")), calm: true, within: time.Second}.run(t, beanstalkKit())
	})
}
