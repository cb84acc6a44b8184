#pragma once

namespace redlock::cli {

/// The program: reads the command line, runs the command, reports errors. Returns the exit code, or
/// dies of the signal that the command died of.
int main(int argc, char** argv);

}  // namespace redlock::cli
