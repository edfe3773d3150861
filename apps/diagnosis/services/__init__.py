"""Changes of the diagnosis app: analyses, their results, uploads, downloads and what is kept."""
