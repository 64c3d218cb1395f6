//go:build !unix

package testserver

import "os"

var stopSignal, contSignal os.Signal
