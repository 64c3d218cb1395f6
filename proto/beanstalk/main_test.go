package beanstalk

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// legal is one reply of every form, with what it means.
var legal = []struct {
	frame string
	want  Reply
}{
	{"INSERTED 1\r\n", Reply{Word: Inserted, HasNumber: true, Number: 1}},
	{"INSERTED 18446744073709551615\r\n", Reply{Word: Inserted, HasNumber: true, Number: 1<<64 - 1}},
	{"BURIED 7\r\n", Reply{Word: Buried, HasNumber: true, Number: 7}},
	{"BURIED\r\n", Reply{Word: Buried}},
	{"USING default\r\n", Reply{Word: Using, Name: []byte("default")}},
	{"USING a-b+/;.$_()9\r\n", Reply{Word: Using, Name: []byte("a-b+/;.$_()9")}},
	{"RESERVED 3 5\r\nhello\r\n", Reply{Word: Reserved, HasNumber: true, Number: 3, Body: []byte("hello")}},
	{"RESERVED 3 0\r\n\r\n", Reply{Word: Reserved, HasNumber: true, Number: 3, Body: []byte{}}},
	{"RESERVED 3 19\r\n\r\nRESERVED 1 1\r\nx\r\n\r\n", Reply{Word: Reserved, HasNumber: true, Number: 3, Body: []byte("\r\nRESERVED 1 1\r\nx\r\n")}},
	{"FOUND 9 2\r\n\r\n\r\n", Reply{Word: Found, HasNumber: true, Number: 9, Body: []byte("\r\n")}},
	{"OK 14\r\n---\n- default\n\r\n", Reply{Word: OK, Body: []byte("---\n- default\n")}},
	{"WATCHING 2\r\n", Reply{Word: Watching, HasNumber: true, Number: 2}},
	{"KICKED 0\r\n", Reply{Word: Kicked, HasNumber: true}},
	{"KICKED\r\n", Reply{Word: Kicked}},
	{"DELETED\r\n", Reply{Word: Deleted}},
	{"RELEASED\r\n", Reply{Word: Released}},
	{"TOUCHED\r\n", Reply{Word: Touched}},
	{"PAUSED\r\n", Reply{Word: Paused}},
	{"TIMED_OUT\r\n", Reply{Word: TimedOut}},
	{"DEADLINE_SOON\r\n", Reply{Word: DeadlineSoon}},
	{"NOT_FOUND\r\n", Reply{Word: NotFound}},
	{"NOT_IGNORED\r\n", Reply{Word: NotIgnored}},
	{"DRAINING\r\n", Reply{Word: Draining}},
	{"JOB_TOO_BIG\r\n", Reply{Word: JobTooBig}},
	{"OUT_OF_MEMORY\r\n", Reply{Word: OutOfMemory}},
	{"EXPECTED_CRLF\r\n", Reply{Word: ExpectedCRLF}},
	{"BAD_FORMAT\r\n", Reply{Word: BadFormat}},
	{"UNKNOWN_COMMAND\r\n", Reply{Word: UnknownCommand}},
	{"INTERNAL_ERROR\r\n", Reply{Word: InternalError}},
}

// illegal is what no server of this protocol says.
var illegal = []string{
	"\r\n", "\n", " \r\n", "INSERTED\r\n", "INSERTED \r\n", "INSERTED x\r\n", "INSERTED -1\r\n", "INSERTED 1 \r\n", "INSERTED 1\n",
	"INSERTED 18446744073709551616\r\n", "INSERTED 000000000000000000001\r\n", "inserted 1\r\n", "USING\r\n", "USING a b\r\n", "USING -a\r\n", "USING \r\n",
	"RESERVED 1\r\n", "RESERVED 1 2 3\r\n", "RESERVED 1 -1\r\n", "RESERVED x 1\r\n", "RESERVED 1 99999999999999999999\r\n", "OK\r\n", "OK \r\n",
	"OK 1 2\r\n", "OK 18446744073709551615\r\n", "DELETED 1\r\n", "DELETED \r\n", "HTTP/1.1 400 Bad Request\r\n", "+OK\r\n", "KICKED \r\n", "BURIED  1\r\n",
	"RESERVED 1 2\r\nabc\r\n", "OK 3\r\nab\r\n\r\n", "FOUND 1 1\r\na\n\n",
}
