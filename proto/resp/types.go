// Package resp knows the bytes of the Redis serialization protocol, versions 2 and 3: where a frame ends, what
// a frame holds, and how a request is written. It does not know what a command or an error code means, and it
// does no I/O. Values of this package belong to one goroutine; nothing here blocks.
//
// Source: the protocol description at https://redis.io/docs/latest/develop/reference/protocol-spec/.
package resp

import (
	"errors"
	"fmt"
	"strings"
)

// Type is the first byte of a value.
type Type byte

const (
	TypeSimple    Type = '+' // text of one line
	TypeError     Type = '-' // error of one line
	TypeInt       Type = ':' // signed 64-bit number
	TypeBulk      Type = '$' // bytes with a length; also the null of version 2
	TypeArray     Type = '*' // values with a count; also a null of version 2
	TypeNull      Type = '_' // version 3 from here on
	TypeBool      Type = '#'
	TypeDouble    Type = ','
	TypeBigNumber Type = '('
	TypeBulkError Type = '!'
	TypeVerbatim  Type = '=' // bytes that begin with a three-letter format and a colon
	TypeMap       Type = '%' // a count of pairs
	TypeSet       Type = '~'
	TypeAttribute Type = '|' // pairs about the value that follows; no value of its own
	TypePush      Type = '>' // out of band: answers no request
)

// shape is what follows the type byte.
type shape uint8

const (
	unknown   shape = iota
	line            // text up to the line end
	bulk            // a length, then bytes
	aggregate       // a count, then values
)

func (t Type) shape() shape {
	switch t {
	case TypeSimple, TypeError, TypeInt, TypeNull, TypeBool, TypeDouble, TypeBigNumber:
		return line
	case TypeBulk, TypeBulkError, TypeVerbatim:
		return bulk
	case TypeArray, TypeMap, TypeSet, TypeAttribute, TypePush:
		return aggregate
	}
	return unknown
}

// nullable says whether the length -1 is a legal null for t.
func (t Type) nullable() bool { return t == TypeBulk || t == TypeArray }

// paired says whether the count of t counts pairs.
func (t Type) paired() bool { return t == TypeMap || t == TypeAttribute }

func (t Type) String() string {
	switch t {
	case TypeSimple:
		return "simple string"
	case TypeError:
		return "error"
	case TypeInt:
		return "integer"
	case TypeBulk:
		return "bulk string"
	case TypeArray:
		return "array"
	case TypeNull:
		return "null"
	case TypeBool:
		return "boolean"
	case TypeDouble:
		return "double"
	case TypeBigNumber:
		return "big number"
	case TypeBulkError:
		return "bulk error"
	case TypeVerbatim:
		return "verbatim string"
	case TypeMap:
		return "map"
	case TypeSet:
		return "set"
	case TypeAttribute:
		return "attribute"
	case TypePush:
		return "push"
	case 0:
		return "nothing"
	}
	return fmt.Sprintf("unknown type %q", byte(t))
}

// Kind is what a frame is to the one who waits for replies.
type Kind uint8

const (
	Reply   Kind = iota // answers a request
	Refusal             // answers a request with an error
	Push                // answers nothing
)

// ErrNull is returned where a value was asked for and the null was found. The null is consumed.
var ErrNull = errors.New("resp: null")

// Error is an error reply, without its type byte and line end. As a value inside an aggregate it is data.
type Error string

func (e Error) Error() string { return string(e) }

// Code is the first word when it is written in capitals (WRONGTYPE, ERR), else empty.
func (e Error) Code() string {
	word, _, _ := strings.Cut(string(e), " ")
	for _, c := range []byte(word) {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return ""
		}
	}
	return word
}

// TypeMismatch says that a value was read as something that it is not. The value is consumed.
type TypeMismatch struct {
	Got  Type
	Want string
}

func (e *TypeMismatch) Error() string {
	return fmt.Sprintf("resp: %v where %s was wanted", e.Got, e.Want)
}

// ProtocolError says that bytes are not the protocol, or exceed a limit: what follows them cannot be framed.
type ProtocolError struct {
	Offset int    // of the offending value, from the start of the frame
	Type   Type   // its type byte, 0 when there is none
	Reason string // fixed words and numbers; never bytes of a payload
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("resp: %v at byte %d: %s", e.Type, e.Offset, e.Reason)
}
