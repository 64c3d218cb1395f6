package hostile

import (
	"strings"
	"testing"
	"time"

	"github.com/fdengine/fullduplex/fdengine"
)

const readTimeout = 5 * time.Second // the default

// unframeable is what no server of version 2 or 3 may say, each in one piece.
var unframeable = []string{
	"$536870913\r\n", "$4294967296\r\n", "$18446744073709551621\r\n", "$-2\r\n", "$0:\r\n", "$?\r\n", "$\r\n", "$+5\r\nhello\r\n",
	"*-2\r\n", "*134217729\r\n", "*99999999999999999999\r\n", "*?\r\n", "%-1\r\n", "%9223372036854775807\r\n", "~-1\r\n", "|-1\r\n",
	">0\r\n", ">-1\r\n", "*1\r\n>1\r\n+x\r\n", ":99999999999999999999\r\n", ":\r\n", ":1 \r\n", "#x\r\n", ",1e\r\n", "(12x\r\n", "_x\r\n",
	"=2\r\nab\r\n", "=4\r\nabcd\r\n", "$3\r\nabcdef", "+a\nb\r\n", "\r\n", "HTTP/1.1 400 Bad Request\r\n", "\x16\x03\x01\x02\x00\x01", "!-1\r\n",
	"*1\r\n*1048576\r\n%134217728\r\n", strings.Repeat("*1\r\n", 100_000), strings.Repeat("%1\r\n+k\r\n", 100_000), strings.Repeat("|1\r\n", 100_000),
	strings.Repeat("*2\r\n*0\r\n", 100_000),
}

// Covers: C08, E-3, S0-30
func TestRepliesOfRedisThatCannotBeFramedCutTheConnectionAtOnce(t *testing.T) {
	for _, raw := range unframeable {
		t.Run(short(raw), func(t *testing.T) { attack{evil: saying(raw), check: framing}.run(t, redisKit()) })
	}
}

// Covers: C46, E-3
func TestRepliesOfBeanstalkdThatCannotBeFramedCutTheConnectionAtOnce(t *testing.T) {
	for _, raw := range []string{
		"OK 2147483648\r\n", "OK 1073741825\r\n", "OK -1\r\n", "OK\r\n", "OK 18446744073709551616\r\n", "RESERVED 1 -5\r\n", "RESERVED -1 5\r\n",
		"RESERVED 1 99999999999999999999\r\nx", "FOUND 1\r\n", "INSERTED 18446744073709551616\r\n", "INSERTED -1\r\n", "INSERTED\r\n", "inserted 1\r\n",
		"INSERTED 1\n", "\r\n", "USING \r\n", "OK 2\r\nabcd", "+OK\r\n", "HTTP/1.1 400 Bad Request\r\n", "\x16\x03\x01\x02\x00\x01\r\n",
	} {
		t.Run(short(raw), func(t *testing.T) { attack{evil: saying(raw), check: framing}.run(t, beanstalkKit()) })
	}
}

func short(raw string) string {
	return strings.NewReplacer("\r\n", " ", "/", "|").Replace(raw[:min(len(raw), 24)])
}

// Covers: C08, C42, E-16
func TestAnAnnouncementFollowedBySilenceCostsNeitherMemoryNorMoreThanTheReadTimeout(t *testing.T) {
	fill := strings.Repeat("x", 200_000) // more than the buffer has room for at first
	for k, raws := range map[*kit][]string{
		keep(redisKit()): {
			"", "+OK", "$", "$536000000\r\n", "$536000000\r\nx", "*134217728\r\n", "%67108864\r\n", "*2\r\n+a\r\n", "|1\r\n+k\r\n+v\r\n", "!536000000\r\n", "$536000000\r\n" + fill, ">2\r\n+a\r\n",
		},
		keep(beanstalkKit()): {"", "INSERTED 1", "INSERTED 1\r", "OK 536000000\r\n", "RESERVED 1 536000000\r\n", "FOUND 1 100\r\nabc", "OK 536000000\r\n" + fill},
	} {
		for _, raw := range raws {
			t.Run(k.name+" "+short(raw), func(t *testing.T) {
				attack{evil: saying(raw), check: late, within: readTimeout}.run(t, *k)
			})
		}
	}
}

func keep(k kit) *kit { return &k }

// Covers: E-36, C08
func TestAReplyOverTheLimitIsRefusedOnItsAnnouncement(t *testing.T) {
	small := fdengine.Options{MaxReply: mib}
	for _, raw := range []string{"$2000000\r\n", "*1000000\r\n", "*2\r\n$1048570\r\n", "%200000\r\n", "=1048577\r\n"} {
		t.Run(short(raw), func(t *testing.T) {
			attack{evil: saying(raw), check: tooLarge, options: small}.run(t, redisKit())
		})
	}
	for _, raw := range []string{"OK 1048577\r\n", "RESERVED 1 2000000\r\n"} {
		t.Run(short(raw), func(t *testing.T) {
			attack{evil: saying(raw), check: tooLarge, options: small}.run(t, beanstalkKit())
		})
	}
	t.Run("the default of the engine", func(t *testing.T) {
		attack{evil: saying("OK 1073741824\r\n"), check: tooLarge}.run(t, beanstalkKit())
	})
}

// Covers: C08, E-48
func TestALineWithoutEndIsGivenUpAtItsLimit(t *testing.T) {
	for _, start := range []string{"+", "-ERR ", "(", "*1\r\n+"} {
		t.Run(start, func(t *testing.T) {
			attack{evil: babbling(start, "1"), check: framing, within: time.Second, heap: 8 * mib}.run(t, redisKit())
		})
	}
	for _, start := range []string{":", "$", "*", "#", "_"} {
		t.Run(start, func(t *testing.T) {
			attack{evil: babbling(start, "1"), check: framing, within: time.Second}.run(t, redisKit())
		})
	}
	for _, start := range []string{"", "INSERTED ", "USING "} {
		t.Run(start, func(t *testing.T) {
			attack{evil: babbling(start, "a"), check: framing, within: time.Second}.run(t, beanstalkKit())
		})
	}
}

// Covers: C08, E-36
func TestAReplyThatGrowsWithoutEndIsGivenUpAtTheLimit(t *testing.T) {
	small := fdengine.Options{MaxReply: mib}
	for name, more := range map[string]string{"attributes": "|1\r\n+k\r\n+v\r\n", "empty attributes": "|0\r\n"} {
		t.Run(name, func(t *testing.T) {
			attack{evil: babbling("", more), check: tooLarge, options: small, within: time.Second, heap: 8 * mib}.run(t, redisKit())
		})
	}
}

// news is a push.
var news = ">2\r\n+news\r\n+" + strings.Repeat("x", 500) + "\r\n"

// Covers: E-30, E-16
func TestPushesWithoutEndAreNoProgress(t *testing.T) {
	attack{evil: babbling("", news), check: late, within: readTimeout}.run(t, redisKit())
	attack{evil: babbling("", ">2\r\n+news\r\n$64000\r\n"+strings.Repeat("x", 64000)+"\r\n"), check: late, within: readTimeout}.run(t, redisKit())
	attack{evil: babbling("*2\r\n+a\r\n", ">1\r\n+inside\r\n"), check: framing, within: time.Second}.run(t, redisKit())
}

// Covers: C42, E-16
func TestAPeerThatDripsOneByteASecondIsGivenUpAfterTheReadTimeout(t *testing.T) {
	attack{evil: dripping("$6\r\nvictim\r\n"), check: late, within: readTimeout}.run(t, redisKit())
	attack{evil: dripping(">1\r\n+a\r\n>1\r\n+b\r\n$6\r\nvictim\r\n"), check: late, within: readTimeout}.run(t, redisKit())
	attack{evil: dripping("INSERTED 1234567\r\n"), check: late, within: readTimeout}.run(t, beanstalkKit())
}
