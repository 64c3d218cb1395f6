package resp

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// legal are whole frames of every shape, with the kind that each has.
var legal = []struct {
	name  string
	frame string
	kind  Kind
}{
	{"simple", "+OK\r\n", Reply},
	{"empty simple", "+\r\n", Reply},
	{"integer", ":42\r\n", Reply},
	{"negative integer", ":-9223372036854775808\r\n", Reply},
	{"signed integer", ":+7\r\n", Reply},
	{"bulk", "$5\r\nhello\r\n", Reply},
	{"bulk with line ends", "$7\r\na\r\n$3\r\n\r\n", Reply},
	{"empty bulk", "$0\r\n\r\n", Reply},
	{"null bulk", "$-1\r\n", Reply},
	{"null array", "*-1\r\n", Reply},
	{"empty array", "*0\r\n", Reply},
	{"array", "*3\r\n:1\r\n$2\r\nab\r\n+x\r\n", Reply},
	{"array with an error", "*2\r\n+OK\r\n-ERR no\r\n", Reply},
	{"nested", "*2\r\n*2\r\n:1\r\n*0\r\n*1\r\n*1\r\n$-1\r\n", Reply},
	{"error", "-ERR wrong\r\n", Refusal},
	{"bulk error", "!9\r\nERR a\r\nbc\r\n", Refusal},
	{"null", "_\r\n", Reply},
	{"true", "#t\r\n", Reply},
	{"double", ",-1.5e+10\r\n", Reply},
	{"infinity", ",-inf\r\n", Reply},
	{"not a number", ",nan\r\n", Reply},
	{"big number", "(-3492890328409238509324850943850943825024385\r\n", Reply},
	{"verbatim", "=7\r\ntxt:abc\r\n", Reply},
	{"empty verbatim", "=4\r\ntxt:\r\n", Reply},
	{"map", "%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:1\r\n:2\r\n", Reply},
	{"empty map", "%0\r\n", Reply},
	{"set", "~2\r\n+a\r\n+b\r\n", Reply},
	{"push", ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", Push},
	{"attribute before a reply", "|1\r\n+ttl\r\n:5\r\n$1\r\na\r\n", Reply},
	{"attribute before an error", "|1\r\n+a\r\n%1\r\n+b\r\n_\r\n-ERR x\r\n", Refusal},
	{"attribute before a push", "|1\r\n+a\r\n+b\r\n>1\r\n+c\r\n", Push},
	{"empty attribute", "|0\r\n:1\r\n", Reply},
	{"two attributes", "|1\r\n+a\r\n+b\r\n|1\r\n+c\r\n+d\r\n:1\r\n", Reply},
	{"attribute inside", "*2\r\n|1\r\n+a\r\n:1\r\n:2\r\n:3\r\n", Reply},
	{"attribute inside, last", "*1\r\n|1\r\n+a\r\n|1\r\n+x\r\n+y\r\n+v\r\n*1\r\n:2\r\n", Reply},
}
