package beanstalk

import "fmt"

// MaxName is the longest name of a tube, in bytes.
const MaxName = 200

// CheckName says why a server would not take name for a tube, as a *NameError; nil when it would. A name is 1 to
// MaxName bytes of letters, digits and -+/;.$_() and does not begin with a minus sign.
func CheckName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "is empty"
	case len(name) > MaxName:
		reason = fmt.Sprintf("has %d bytes, the limit is %d", len(name), MaxName)
		name = name[:MaxName+1]
	case name[0] == '-':
		reason = "begins with a minus sign"
	default:
		for i := range len(name) {
			if !inName(name[i]) {
				reason = fmt.Sprintf("has %q at byte %d", name[i], i)
				break
			}
		}
	}
	if reason == "" {
		return nil
	}
	return &NameError{Name: name, Reason: reason}
}

func inName(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	switch c {
	case '-', '+', '/', ';', '.', '$', '_', '(', ')':
		return true
	}
	return false
}

// validName is CheckName without the reason, for bytes.
func validName(b []byte) bool {
	if len(b) == 0 || len(b) > MaxName || b[0] == '-' {
		return false
	}
	for _, c := range b {
		if !inName(c) {
			return false
		}
	}
	return true
}
