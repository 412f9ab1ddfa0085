//! Where an environment runs, and the client that talks to it
