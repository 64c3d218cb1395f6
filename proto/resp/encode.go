package resp

import (
	"encoding"
	"fmt"
	"strconv"
	"time"
)

// The Append functions write requests, which are arrays of bulk strings in both versions. They append to dst
// and return the result, keep nothing, and allocate only when dst must grow.

// AppendArrayHeader writes the head of a request of n arguments, the command's name included.
func AppendArrayHeader(dst []byte, n int) []byte { return appendHeader(dst, '*', n) }

// AppendBulk writes one argument.
func AppendBulk(dst, b []byte) []byte {
	dst = append(appendHeader(dst, '$', len(b)), b...)
	return append(dst, '\r', '\n')
}

// AppendBulkString writes one argument.
func AppendBulkString(dst []byte, s string) []byte {
	dst = append(appendHeader(dst, '$', len(s)), s...)
	return append(dst, '\r', '\n')
}

// AppendBulkInt writes one argument as decimal text.
func AppendBulkInt(dst []byte, n int64) []byte {
	var b [20]byte
	return AppendBulk(dst, strconv.AppendInt(b[:0], n, 10))
}

// AppendBulkUint writes one argument as decimal text.
func AppendBulkUint(dst []byte, n uint64) []byte {
	var b [20]byte
	return AppendBulk(dst, strconv.AppendUint(b[:0], n, 10))
}

// AppendBulkFloat writes one argument in the shortest form that reads back as the same float64.
func AppendBulkFloat(dst []byte, f float64) []byte {
	var b [32]byte
	return AppendBulk(dst, strconv.AppendFloat(b[:0], f, 'g', -1, 64))
}

func appendHeader(dst []byte, t byte, n int) []byte {
	switch {
	case n < 10:
		return append(dst, t, '0'+byte(n), '\r', '\n')
	case n < 100:
		return append(dst, t, '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
	}
	dst = strconv.AppendInt(append(dst, t), int64(n), 10)
	return append(dst, '\r', '\n')
}

// AppendCommand writes a whole request. Arguments may be string, []byte, any integer or float type, bool (1 or
// 0) and encoding.BinaryMarshaler. Everything else is an error, and dst is returned as it was: a nil because
// the protocol has no null argument, a time.Duration or time.Time because the unit is the command's affair.
// The error names the position and type, never the value.
func AppendCommand(dst []byte, args ...any) ([]byte, error) {
	if len(args) == 0 {
		return dst, fmt.Errorf("resp: a command needs a name")
	}
	out := AppendArrayHeader(dst, len(args))
	for i, a := range args {
		var err error
		if out, err = AppendArg(out, a); err != nil {
			return dst, fmt.Errorf("resp: argument %d: %w", i, err)
		}
	}
	return out, nil
}

// AppendArg writes one argument of a type that AppendCommand takes.
func AppendArg(dst []byte, arg any) ([]byte, error) {
	switch v := arg.(type) {
	case string:
		return AppendBulkString(dst, v), nil
	case []byte:
		return AppendBulk(dst, v), nil
	case int:
		return AppendBulkInt(dst, int64(v)), nil
	case int64:
		return AppendBulkInt(dst, v), nil
	case int32:
		return AppendBulkInt(dst, int64(v)), nil
	case int16:
		return AppendBulkInt(dst, int64(v)), nil
	case int8:
		return AppendBulkInt(dst, int64(v)), nil
	case uint:
		return AppendBulkUint(dst, uint64(v)), nil
	case uint64:
		return AppendBulkUint(dst, v), nil
	case uint32:
		return AppendBulkUint(dst, uint64(v)), nil
	case uint16:
		return AppendBulkUint(dst, uint64(v)), nil
	case uint8:
		return AppendBulkUint(dst, uint64(v)), nil
	case float64:
		return AppendBulkFloat(dst, v), nil
	case float32:
		var b [32]byte
		return AppendBulk(dst, strconv.AppendFloat(b[:0], float64(v), 'g', -1, 32)), nil
	case bool:
		if v {
			return AppendBulkString(dst, "1"), nil
		}
		return AppendBulkString(dst, "0"), nil
	case nil:
		return dst, fmt.Errorf("nil cannot be sent")
	case time.Duration:
		return dst, fmt.Errorf("a time.Duration has no unit on the wire: pass seconds or milliseconds as the command wants")
	case time.Time:
		return dst, fmt.Errorf("a time.Time has no form on the wire: pass Unix seconds or milliseconds, or text")
	case encoding.BinaryMarshaler:
		b, err := v.MarshalBinary()
		if err != nil {
			return dst, fmt.Errorf("%T: %w", arg, err)
		}
		return AppendBulk(dst, b), nil
	}
	return dst, fmt.Errorf("%T cannot be sent", arg)
}
