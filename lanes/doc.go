// Package lanes runs several engines for one address beside each other: lanes. It knows which of them a command
// goes to, and nothing else: order, bytes and time on each connection are the engine's (package fdengine), what a
// command's key is the command says (Keyed), and connections come from whoever made the engines.
//
// # Which lane
//
// A command with a key goes to the lane that the key's hash names: always the same one while the Lanes live. A
// command without a key goes to the lane with the fewest commands outstanding. A Stream is bound to one lane for all
// its life. Nothing moves from one lane to another.
//
// # What order is kept
//
// All that an engine promises holds within a lane, replay included. So:
//
//   - Commands of one key are written in the order in which they were submitted, over a reconnect as well, and are
//     never overtaken by each other except as on a single engine (a refused one that goes again).
//   - A command with several keys goes by its first. It has no order to commands of its other keys.
//   - Commands without a key have no order to any others, nor among themselves, those of one DoBatch excepted: they
//     stay together, in order.
//   - A Stream's commands are in order among themselves, also of different keys. They have no order to commands
//     outside the Stream, unless it was made for their key.
//   - What had returned before something else was submitted ran before it, if it ran: an outcome of fate MaybeExecuted
//     may still be on its way in its own lane.
//
// # When a lane is broken
//
// A lane without a connection keeps its keys: their commands wait there, as on a single engine, and do not go to
// another lane, where they might overtake what may still run. The fate of a command is what its engine says, and no
// lane sends what another had. A command that kills the server is isolated (fdengine.ErrPoisoned) in its own lane;
// those in other lanes lose their connections beside it and are charged like after any cut.
//
// When one engine ends, closed by somebody or broken by a fault of its own, the others are closed. Limits of an
// engine's Options are per lane, and hooks that all lanes share (Limiter, Observer, OnPush, Rerouter) are called by
// several of them at the same time.
package lanes
