#include "textflag.h"

// func prefetchLines(p unsafe.Pointer)
//
// PRFM PSTL1KEEP: Arm Architecture Reference Manual, "PRFM (register)".
TEXT ·prefetchLines(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PSTL1KEEP
	ADD  $64, R0
	PRFM (R0), PSTL1KEEP
	RET
