// Package cuts ends connections at every byte: a pipeline of five commands, of all classes and shapes, is cut at
// each offset of what the client sends and of what the server answers, in the handshake and behind it, and what
// became of each command is compared with what the server knows to have received. It is tests only; it knows the
// bindings by what they export, and two small servers of its own that keep every byte.
package cuts
