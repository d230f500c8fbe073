"""Tests of judged models."""
