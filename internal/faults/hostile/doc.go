// Package hostile talks to servers that lie, babble, drip, fall silent or never listen, and checks that each costs
// bounded memory and bounded time, that the commands it was given end with true fates, and that the next connection
// serves those who are left. It is tests only; it knows the bindings by what they export, and a server of its own
// whose first connection goes bad in a chosen way.
package hostile
