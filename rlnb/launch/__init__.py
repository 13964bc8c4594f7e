"""How a run's processes are started: argv and paths, never tasks, libraries or torch."""
