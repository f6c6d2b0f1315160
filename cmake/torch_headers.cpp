// Carries the precompiled headers of everything that sees torch; see PlimsollTorch.cmake.
