#include "textflag.h"

// func prefetchLines(p unsafe.Pointer)
//
// PREFETCHW m8 is 0F 0D /1 (AMD64 Architecture Programmer's Manual, volume 3); the assembler does not know it. A CPU without
// it takes it for a NOP.
TEXT ·prefetchLines(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08             // PREFETCHW (AX)
	BYTE $0x0F; BYTE $0x0D; BYTE $0x48; BYTE $0x40 // PREFETCHW 64(AX)
	RET
